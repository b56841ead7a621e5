import { useMemo, useState } from "react";

import { cutText, visibleParts } from "../../../pure/agent_question.ts";
import { agents } from "../../../text/agents.ts";
import { Button } from "../../../ui/Button.tsx";

/** A short text from outside, isolated from the text around it. Characters that cannot be seen are named. */
export function Word({ text }: { text: string }) {
  const parts = useMemo(() => visibleParts(text), [text]);
  return (
    <bdi className="agent-word">
      {parts.map((part, at) =>
        part.isHidden ? (
          <span key={at} className="agent-hidden" title={agents.hiddenCharacter(part.text)}>
            {part.text}
          </span>
        ) : (
          part.text
        ),
      )}
    </bdi>
  );
}

/** The same, with names between backticks as code. */
export function TickedWord({ text }: { text: string }) {
  const parts = text.split("`");
  // An odd backtick is a character like any other.
  if (parts.length % 2 === 0) return <Word text={text} />;
  return (
    <bdi>
      {parts.map((part, at) =>
        at % 2 === 0 ? (
          <Word key={at} text={part} />
        ) : (
          <code key={at}>
            <Word text={part} />
          </code>
        ),
      )}
    </bdi>
  );
}

interface WordsProps {
  text: string;
  /** Code and data: every character has the same width. */
  isCode?: boolean;
  charsMax?: number;
  linesMax?: number;
}

/** A text from outside with its line breaks. A long one is cut, with a way to see all of it. */
export function Words({ text, isCode = false, charsMax = 4000, linesMax = 40 }: WordsProps) {
  const [isAll, setAll] = useState(false);
  const shown = useMemo(() => cutText(text, charsMax, linesMax), [text, charsMax, linesMax]);
  const isCut = shown.length < text.length;
  return (
    <div className="agent-words" data-code={isCode}>
      <div className="agent-words-text" dir="auto">
        <Word text={isAll ? text : shown} />
        {isCut && !isAll && "…"}
      </div>
      {isCut && (
        <Button kind="quiet" onClick={() => setAll(!isAll)} aria-expanded={isAll}>
          {isAll ? agents.showLess : agents.showAll(text.length)}
        </Button>
      )}
    </div>
  );
}
