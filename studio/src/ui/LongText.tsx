import { useState } from "react";

import { formatCount } from "../pure/format.ts";
import { visibleText } from "../pure/json_tree.ts";
import { thread } from "../text/thread.ts";

/** What is shown of a text at first, and how much more with every press. */
const FIRST = 400;
const MORE = 20_000;

/** Text of others: what cannot be seen in it is shown, and a long one is cut with a way to see all of it. */
export function LongText(props: { text: string; first?: number; isQuoted?: boolean }) {
  const { text, first = FIRST, isQuoted = false } = props;
  const [length, setLength] = useState(first);
  const left = text.length - length;
  return (
    <>
      {isQuoted && <Quote />}
      <bdi>{visibleText(left > 0 ? text.slice(0, length) : text)}</bdi>
      {isQuoted && left <= 0 && <Quote />}
      {left > 0 && (
        <button
          type="button"
          className="json-more"
          onClick={(event) => {
            event.stopPropagation();
            setLength(length + MORE);
          }}
        >
          … {thread.tree.showMore(formatCount(left))}
        </button>
      )}
      {left <= 0 && text.length > first && (
        <button
          type="button"
          className="json-more"
          onClick={(event) => {
            event.stopPropagation();
            setLength(first);
          }}
        >
          {thread.tree.showLess}
        </button>
      )}
    </>
  );
}

/** Tells a text from a number, and an empty text from nothing. */
function Quote() {
  return <span className="muted">"</span>;
}
