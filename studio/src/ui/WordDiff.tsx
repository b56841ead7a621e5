import { useMemo } from "react";

import { visibleText } from "../pure/json_tree.ts";
import { type TextPart, wordDiff } from "../pure/word_diff.ts";
import { LongText } from "./LongText.tsx";

/** How much of a part that is the same in both texts is shown around a change. */
const CONTEXT = 300;

/** Two texts as one: what was removed is struck out, what was added is marked. */
export function WordDiff({ before, after }: { before: string; after: string }) {
  const parts = useMemo(() => wordDiff(before, after), [before, after]);
  return (
    <p className="change-text">
      {parts.map((part, at) => (
        <Part key={at} part={part} />
      ))}
    </p>
  );
}

function Part({ part }: { part: TextPart }) {
  if (part.kind === "added") {
    return (
      <ins>
        <LongText text={part.text} first={2000} />
      </ins>
    );
  }
  if (part.kind === "removed") {
    return (
      <del>
        <LongText text={part.text} first={2000} />
      </del>
    );
  }
  if (part.text.length <= 2 * CONTEXT) return <bdi>{visibleText(part.text)}</bdi>;
  return (
    <>
      <LongText text={part.text.slice(0, -CONTEXT)} first={CONTEXT} />
      <bdi>{visibleText(part.text.slice(-CONTEXT))}</bdi>
    </>
  );
}
