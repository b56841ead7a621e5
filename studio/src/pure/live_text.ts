/** Texts that grow: what is drawn of them, and what they keep in memory. */

/** About how much of a text is drawn while it grows. */
export const TAIL = 20_000;

/**
 * Returns the end of a text that grows, from the beginning of a paragraph if there is one. Where it begins changes seldom, so most of
 * what is drawn stays.
 */
export function tailOf(text: string, length: number = TAIL): string {
  if (text.length <= length * 1.5) return text;
  const step = Math.ceil(length / 2);
  const from = Math.floor((text.length - length) / step) * step;
  const paragraph = text.indexOf("\n\n", from);
  return text.slice(paragraph >= 0 && paragraph < from + step ? paragraph + 2 : from);
}

/**
 * Returns the parts that are the same as before as the same strings, and copies of the others. A part of a string keeps all of it in
 * memory: without copies, each paragraph of a growing text would keep the text as it was when the paragraph was written.
 */
export function ownParts(parts: readonly string[], before: readonly string[]): string[] {
  return parts.map((part, index) => {
    const known = before[index];
    return known === part ? known : copyOf(part);
  });
}

/** A joined string is a new one once it is cut, and this one is as short as the part. */
function copyOf(text: string): string {
  return ` ${text}`.slice(1);
}
