// Characters that change the direction of text or cannot be seen: text of others could hide in them. Joiners move nothing and stay,
// because many scripts and emoji need them.
const HIDDEN = /(?![\n\r\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]/gu;

// More marks on one letter than any script has would be drawn over the lines above and below.
const STACKED = /(\p{M}{8})\p{M}+/gu;

/** Returns a text in which characters that cannot be seen are shown by their number, and which covers nothing but its own line. */
export function visibleText(text: string): string {
  return text.replace(HIDDEN, numbered).replace(STACKED, "$1…");
}

/** Returns the number of a character: `⟨U+202E⟩`. */
export function numbered(found: string): string {
  const code = (found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return `⟨U+${code}⟩`;
}
