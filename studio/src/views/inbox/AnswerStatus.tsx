import { useEffect, useRef, useState } from "react";

import type { Json } from "../../api/json.ts";
import { inbox as text } from "../../text/inbox.ts";
import { Button } from "../../ui/Button.tsx";
import { JsonTree } from "../../ui/JsonTree.tsx";
import { LongText } from "../../ui/LongText.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { type FirstAnswer, firstText } from "./first_answer.ts";
import { forget, type OutgoingAnswers, sendNow, undo } from "./outbox.ts";

/** What became of an answer that was given. */
export function AnswerStatus({ outgoing, way }: { outgoing: OutgoingAnswers; way: string }) {
  const { phase, batch } = outgoing;
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    // The button that was pressed is gone; the focus stays here, next to what can be undone.
    if (document.activeElement === document.body) place.current?.focus();
  }, []);
  return (
    <section
      ref={place}
      tabIndex={-1}
      className="inbox-status"
      data-phase={phase.name}
      aria-label={text.answered(way)}
    >
      {phase.name === "held" && (
        <div className="row">
          <Countdown until={phase.until} way={way} />
          <Button aria-keyshortcuts="u" onClick={() => undo(batch)}>
            {text.undo}{" "}
            <span className="inbox-key" aria-hidden="true">
              u
            </span>
          </Button>
          <Button kind="quiet" onClick={() => sendNow(batch)}>
            {text.sendNow}
          </Button>
        </div>
      )}
      {phase.name === "sending" && <p role="status">{text.sending(way)}</p>}
      {phase.name === "away" && <p role="status">{text.away(way)}</p>}
      {phase.name === "sent" && <p role="status">{text.sent(way)}</p>}
      {phase.name === "taken" && <TakenNotice raised={phase.by} />}
      {phase.name === "refused" && (
        <Notice tone="bad" title={text.refused}>
          <p role="alert">
            <bdi>{phase.why}</bdi>
          </p>
          <p>{text.refusedNext}</p>
          <Button onClick={() => forget(outgoing.thread)}>{text.change}</Button>
        </Notice>
      )}
    </section>
  );
}

function Countdown({ until, way }: { until: number; way: string }) {
  const [left, setLeft] = useState(() => until - Date.now());
  useEffect(() => {
    const timer = setInterval(() => setLeft(until - Date.now()), 200);
    return () => clearInterval(timer);
  }, [until]);
  return <p role="timer">{text.held(way, Math.max(0, Math.ceil(left / 1000)))}</p>;
}

/** Says who answered an interrupt, when, and what. */
export function TakenNotice({ raised }: { raised: FirstAnswer | undefined }) {
  const isClosed = raised?.status === "closed";
  return (
    <Notice tone="warn" title={firstText(raised)}>
      {!isClosed && <p>{text.firstNext}</p>}
      {raised?.status === "answered" && raised.answer !== undefined && (
        <>
          <h3>{text.theirAnswer}</h3>
          <AnswerValue value={raised.answer as Json} />
        </>
      )}
    </Notice>
  );
}

export function AnswerValue({ value }: { value: Json }) {
  if (typeof value === "object" && value !== null) return <JsonTree name={text.theirAnswer} value={value} />;
  return (
    <p className="inbox-text">
      <LongText text={typeof value === "string" ? value : JSON.stringify(value ?? null)} />
    </p>
  );
}
