import type { ReactNode } from "react";
import { ApiProblem } from "../api/client.ts";
import { visibleText } from "../pure/visible_text.ts";
import { text } from "../text/index.ts";
import { Button } from "./Button.tsx";

const MESSAGE_MAX = 2000;

/** What a view shows in place of its content: what is so, and what to do next. */
export function Notice(props: { title: string; tone?: "plain" | "bad" | "warn"; children?: ReactNode }) {
  return (
    <section className="notice" data-tone={props.tone ?? "plain"}>
      <h2>
        <bdi>{props.title}</bdi>
      </h2>
      {props.children}
    </section>
  );
}

/** A failure that the visitor can act on. */
export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  // The server may repeat what others wrote.
  const message = visibleText(error instanceof Error ? error.message : String(error)).slice(0, MESSAGE_MAX);
  const next = error instanceof ApiProblem ? text.common.whatToDo(error.status) : text.common.whatToDo(500);
  return (
    <div role="alert">
      <Notice tone="bad" title={message}>
        <p>{next}</p>
        {onRetry && <Button onClick={onRetry}>{text.common.tryAgain}</Button>}
      </Notice>
    </div>
  );
}

/** Something is being fetched. Shown at once, read by screen readers. */
export function Loading({ what }: { what: string }) {
  return (
    <p className="muted" role="status">
      {text.common.loading(what)}
    </p>
  );
}
