/** Text of others, as it may be shown. */

/**
 * Characters that are not seen and change how the text around them is read: direction, control. Joiners are left: many scripts and
 * emoji need them.
 */
const HIDDEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}]/gu;

/** Returns the text with the characters that hide or turn text around written out. */
export function withVisibleControls(text: string): string {
  return text.replace(
    HIDDEN,
    (found) => `⟨U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/** Returns the beginning of a text, and whether something is missing. Does not cut a character in two. */
export function beginning(text: string, length: number): { text: string; isCut: boolean } {
  if (text.length <= length) return { text, isCut: false };
  const end = /[\ud800-\udbff]/.test(text[length - 1] ?? "") ? length - 1 : length;
  return { text: text.slice(0, end), isCut: true };
}
