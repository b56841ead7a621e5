import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from "react";

import { tailOf } from "../../../pure/live_text.ts";
import { visibleText } from "../../../pure/markdown.ts";
import { messages as text } from "../../../text/messages.ts";
import { Button } from "../../../ui/Button.tsx";
import { Markdown } from "../../../ui/Markdown.tsx";

/** What the reader opened. Rows of a long list come and go while it is scrolled, so they cannot remember it themselves. */
interface Opened {
  has: (key: string) => boolean;
  set: (key: string, isOpen: boolean) => void;
}

const OpenedContext = createContext<Opened>({ has: () => false, set: () => {} });

export function OpenedProvider({ children }: { children: ReactNode }) {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  const set = useCallback((key: string, isOpen: boolean) => {
    setKeys((before) => {
      if (before.has(key) === isOpen) return before;
      const after = new Set(before);
      if (isOpen) after.add(key);
      else after.delete(key);
      return after;
    });
  }, []);
  const opened = useMemo(() => ({ has: (key: string) => keys.has(key), set }), [keys, set]);
  return <OpenedContext value={opened}>{children}</OpenedContext>;
}

/** A part that is closed at first. What is inside is made when it is opened. */
export function Fold(props: { id: string; summary: string; children: () => ReactNode }) {
  const { id, summary, children } = props;
  const opened = useContext(OpenedContext);
  const isOpen = opened.has(id);
  return (
    <details className="fold" open={isOpen} onToggle={(event) => opened.set(id, event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && <div className="fold-body">{children()}</div>}
    </details>
  );
}

/** How much of a long text is shown at first. */
const SHOWN_MAX = 4000;
/** Formatting more would make the page slow; the rest is shown as it is. */
const FORMATTED_MAX = 100_000;

/** A text that may be long: its beginning, and all of it on demand. */
export function LongText(props: { id: string; value: string; isMarkdown?: boolean; isGrowing?: boolean }) {
  const { id, value, isMarkdown = false, isGrowing = false } = props;
  const opened = useContext(OpenedContext);
  const isLong = !isGrowing && value.length > SHOWN_MAX * 1.25;
  const isOpen = opened.has(id);
  // Of a text that grows, the end is what the reader waits for.
  const whole = isGrowing ? tailOf(value) : value;
  const shown = isLong && !isOpen ? `${value.slice(0, SHOWN_MAX)}…` : whole;
  return (
    <>
      {whole !== value && <p className="muted small">{text.beginningLater}</p>}
      {isMarkdown && (isGrowing || shown.length <= FORMATTED_MAX) ? (
        <Markdown text={shown} />
      ) : (
        <pre className="plain-text" dir="auto">
          {visibleText(shown)}
        </pre>
      )}
      {isLong && (
        <Button kind="quiet" onClick={() => opened.set(id, !isOpen)}>
          {isOpen ? text.showLess : text.showAll(value.length)}
        </Button>
      )}
    </>
  );
}

/** JSON as it is, on demand. */
export function RawJson({ id, summary, value }: { id: string; summary: string; value: unknown }) {
  return (
    <Fold id={id} summary={summary}>
      {() => <LongText id={`${id}/text`} value={JSON.stringify(value, null, 2) ?? ""} />}
    </Fold>
  );
}
