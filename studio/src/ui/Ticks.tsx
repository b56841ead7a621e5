import { visibleText } from "../pure/visible_text.ts";

/** Text in which names are between backticks, as in messages of the program: they are drawn as code. */
export function Ticks({ text }: { text: string }) {
  const parts = visibleText(text).split("`");
  // An odd backtick is a character like any other.
  if (parts.length % 2 === 0) return <bdi>{visibleText(text)}</bdi>;
  return <bdi>{parts.map((part, at) => (at % 2 === 0 ? part : <code key={at}>{part}</code>))}</bdi>;
}
