import { type FormEvent, type KeyboardEvent, useRef } from "react";

import { start } from "../../text/start.ts";
import { Button } from "../../ui/Button.tsx";
import { useDraft } from "./draft.ts";

interface ComposerProps {
  draftKey: string;
  isSending: boolean;
  /** Fails if the message was not sent: then it stays in the field. */
  onSend: (text: string) => Promise<unknown>;
}

/** Where a message is written. */
export function Composer({ draftKey, isSending, onSend }: ComposerProps) {
  const [text, setText] = useDraft<string>(draftKey, "");
  const field = useRef<HTMLTextAreaElement>(null);
  const typed = useRef(text);
  typed.current = text;
  const isEmpty = text.trim() === "";
  const send = (event?: FormEvent) => {
    event?.preventDefault();
    if (isEmpty || isSending) return;
    const sent = text;
    setText("");
    // What was typed in the meantime stays, after the message that comes back.
    onSend(sent).catch(() => setText([sent, typed.current].filter(Boolean).join("\n")));
    field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // While an input method composes a word, Enter belongs to it.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form className="composer" onSubmit={send}>
      <div className="field">
        <label htmlFor="chat-text">{start.message}</label>
        <textarea
          ref={field}
          id="chat-text"
          rows={Math.min(10, Math.max(2, text.split("\n", 10).length))}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          aria-describedby="chat-hint"
        />
        <p id="chat-hint" className="muted small">
          {start.sendHint}
        </p>
      </div>
      <Button kind="primary" type="submit" disabled={isEmpty || isSending}>
        {isSending ? start.sending : start.send}
      </Button>
    </form>
  );
}
