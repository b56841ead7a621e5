import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { cancelRun, createThread, startRun } from "../../api/actions.ts";
import { isObject, type Json, type JsonObject } from "../../api/json.ts";
import { runsQuery, threadQuery } from "../../api/queries.ts";
import { RequestKeys } from "../../api/request_keys.ts";
import type { Assistant, Thread } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, navigate } from "../../app/location.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { start } from "../../text/start.ts";
import { Button } from "../../ui/Button.tsx";
import { Failure, Loading } from "../../ui/Notice.tsx";
import { SchemaForm } from "../../ui/SchemaForm.tsx";
import { ThreadInterrupts } from "../inbox/ThreadInterrupts.tsx";
import { MessagesPane } from "../thread/messages/MessagesPane.tsx";
import { shownName } from "./AssistantCard.tsx";
import { Composer } from "./Composer.tsx";
import { useDraft } from "./draft.ts";

interface ChatViewProps {
  assistant: Assistant;
  /** The channel of the conversation. */
  channel: string;
  schema: unknown;
  /** `undefined` before the first message. */
  thread: string | undefined;
}

/** A conversation with an assistant whose graph has messages as its input. */
export function ChatView({ assistant, channel, schema, thread }: ChatViewProps) {
  const id = assistant.assistant_id;
  const found = useQuery({ ...threadQuery(thread ?? ""), enabled: thread !== undefined });
  const [more, setMore] = useDraft<Json>(`chat-more:${id}`, {});
  const [keys] = useState(() => new RequestKeys());
  const sending = useMutation({
    mutationFn: async (text: string) => {
      const input = { ...(isObject(more) ? more : {}), [channel]: [{ type: "human", content: text }] };
      const to = thread ?? (await createThread({}, keys.of("thread"))).thread_id;
      await startRun(to, id, input, {}, keys.of([to, input]));
      return to;
    },
    onSuccess: (to) => {
      keys.forget();
      if (to !== thread) navigate(hrefOf(["start", id, to]), "replace");
    },
  });
  return (
    <div className="view chat">
      <ChatHead assistant={assistant} thread={thread} />
      <div className="chat-messages">
        {found.data && <MessagesPane thread={found.data} assistant={id} checkpoint={undefined} />}
        {thread && !found.data && !found.error && <Loading what={shownName(assistant)} />}
        {!thread && <p className="muted">{start.chatEmpty}</p>}
      </div>
      {found.error && !found.data && <Failure error={found.error} onRetry={() => void found.refetch()} />}
      {found.data && <ChatStatus thread={found.data} />}
      {sending.error && <Failure error={sending.error} />}
      <MoreInputs schema={schema} channel={channel} value={more} onChange={setMore} />
      <Composer
        key={thread}
        draftKey={`chat:${id}:${thread ?? "new"}`}
        isSending={sending.isPending}
        onSend={(text) => sending.mutateAsync(text)}
      />
    </div>
  );
}

function ChatHead({ assistant, thread }: Pick<ChatViewProps, "assistant" | "thread">) {
  return (
    <header>
      <h1>
        <bdi>{start.chatTitle(shownName(assistant))}</bdi>
      </h1>
      <span className="spacer" />
      {thread && <Link href={hrefOf(["start", assistant.assistant_id])}>{start.newChat}</Link>}
      {thread && <Link href={hrefOf(["threads", thread])}>{start.seeThread}</Link>}
      {!thread && <Link href={hrefOf(["start"])}>{start.all}</Link>}
    </header>
  );
}

/** What the assistant does: it works, waits for an answer, or failed. */
function ChatStatus({ thread }: { thread: Thread }) {
  const runs = useQuery({ ...runsQuery(thread.thread_id), enabled: thread.status === "busy" });
  const active = runs.data?.filter(({ status }) => status === "pending" || status === "running") ?? [];
  const stopping = useMutation({
    mutationFn: () => Promise.all(active.map((run) => cancelRun(thread.thread_id, run.run_id))),
  });
  const isBusy = thread.status === "busy";
  return (
    <>
      <div className="row" role="status">
        {isBusy && <span className="muted">{start.chatWorks}</span>}
        {isBusy && (
          <Button
            kind="danger"
            disabled={stopping.isPending || active.length === 0}
            onClick={() => stopping.mutate()}
          >
            {stopping.isPending ? start.stopping : start.stop}
          </Button>
        )}
        {thread.status === "interrupted" && <span>{start.chatWaits}</span>}
        {thread.status === "error" && <Failed error={thread.error} />}
      </div>
      {stopping.error && <Failure error={stopping.error} />}
      {thread.status === "interrupted" && <ThreadInterrupts thread={thread.thread_id} />}
    </>
  );
}

function Failed({ error }: { error: unknown }) {
  const message = isObject(error) && typeof error.message === "string" ? error.message : "";
  return (
    <span className="field-problem">
      {start.chatFailed} <bdi>{visibleText(message.slice(0, 500))}</bdi>
    </span>
  );
}

interface MoreInputsProps extends Pick<ChatViewProps, "schema" | "channel"> {
  value: Json;
  onChange: (value: Json) => void;
}

/** The inputs of the graph besides the conversation. */
function MoreInputs({ schema, channel, value, onChange }: MoreInputsProps) {
  const [others] = useState(() => otherInputs(schema, channel));
  if (!others) return null;
  return (
    <details>
      <summary>{start.moreInputs}</summary>
      <SchemaForm idPrefix="chat-more" schema={others} value={value} onChange={onChange} />
    </details>
  );
}

function otherInputs(schema: unknown, channel: string): JsonObject | undefined {
  if (!isObject(schema) || !isObject(schema.properties)) return undefined;
  const { [channel]: _messages, ...properties } = schema.properties;
  if (Object.keys(properties).length === 0) return undefined;
  // A chat can begin without them; the graph says what it needs.
  return { ...schema, title: "", properties, required: [] };
}
