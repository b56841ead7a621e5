import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { inbox as text } from "../../text/inbox.ts";
import { Button } from "../../ui/Button.tsx";
import { dismissMessage, useMessages } from "./messages.ts";
import { sendNow, undo, useOutbox } from "./outbox.ts";

/** What happened by itself, and answers that can still be undone. */
export function MessageList() {
  const messages = useMessages();
  return (
    <div role="status" className="inbox-messages">
      {messages.map(({ id, text: message, tone, thread }) => (
        <p key={id} className="row inbox-message" data-tone={tone}>
          <span>
            <bdi>{visibleText(message)}</bdi>{" "}
            {thread && <Link href={hrefOf(["threads", thread])}>{text.facts.thread}</Link>}
          </span>
          <Button kind="quiet" onClick={() => dismissMessage(id)}>
            {text.dismiss}
          </Button>
        </p>
      ))}
      <HeldBar />
    </div>
  );
}

/** The way to undo answers to several threads, or to one that is not on screen any more. */
function HeldBar() {
  const held = [...useOutbox().values()].filter(({ phase }) => phase.name === "held");
  const batch = held.at(-1)?.batch;
  const count = held.filter((entry) => entry.batch === batch).length;
  if (batch === undefined || count < 2) return null;
  return (
    <p className="row inbox-message">
      <span>{text.heldMany(count)}</span>
      <Button onClick={() => undo(batch)}>{text.undo}</Button>
      <Button kind="quiet" onClick={() => sendNow(batch)}>
        {text.sendNow}
      </Button>
    </p>
  );
}
