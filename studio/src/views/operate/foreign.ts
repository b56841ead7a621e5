/** Text of others, as it may be shown. */

export { visibleText as withVisibleControls } from "../../pure/visible_text.ts";

/** Returns the beginning of a text, and whether something is missing. Does not cut a character in two. */
export function beginning(text: string, length: number): { text: string; isCut: boolean } {
  if (text.length <= length) return { text, isCut: false };
  const end = /[\ud800-\udbff]/.test(text[length - 1] ?? "") ? length - 1 : length;
  return { text: text.slice(0, end), isCut: true };
}
