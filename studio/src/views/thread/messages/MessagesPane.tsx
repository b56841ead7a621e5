import "./messages.css";

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { stateQuery } from "../../../api/queries.ts";
import { setQuery, usePageLocation } from "../../../app/location.ts";
import { visibleText } from "../../../pure/markdown.ts";
import {
  channelsOf,
  type Entry,
  liveEntries,
  type MessageChannel,
  replacedOf,
  storedEntries,
  type ThreadMessage,
} from "../../../pure/messages.ts";
import { messages as text } from "../../../text/messages.ts";
import { Failure, Loading, Notice } from "../../../ui/Notice.tsx";
import type { PaneProps } from "../pane.ts";
import { OpenedProvider } from "./Fold.tsx";
import { useFacts } from "./facts.ts";
import { type LiveView, useLiveThread } from "./live.ts";
import { MessageList } from "./MessageList.tsx";
import { NoChannel } from "./NoChannel.tsx";

const NO_MESSAGES: readonly ThreadMessage[] = [];

/** The messages of a thread at a checkpoint, and what is being written if the newest one is followed. */
export function MessagesPane({ thread, checkpoint }: PaneProps) {
  const id = thread.thread_id;
  const state = useQuery(stateQuery(id, checkpoint));
  const live = useLiveThread(checkpoint === undefined ? id : undefined);
  const channels = useMemo(() => channelsOf(state.data), [state.data]);
  const wanted = usePageLocation().query.get("channel");
  const channel = channels.find(({ name }) => name === wanted) ?? channels[0];
  const stored = channel?.messages ?? NO_MESSAGES;
  const at = checkpoint === undefined ? undefined : state.data?.created_at;
  const facts = useFacts(id, checkpoint, at ? Date.parse(at) : undefined, stored);
  // The state is the newer one once it was fetched after the run stopped.
  const entries = useEntries(stored, live, state.dataUpdatedAt > live.stoppedAt && channel !== undefined);
  if (state.isPending) return <Loading what={text.loading} />;
  if (state.isError && !state.data)
    return <Failure error={state.error} onRetry={() => void state.refetch()} />;
  const isEmpty = entries.stored.length + entries.live.length === 0;
  return (
    <OpenedProvider>
      <section className="messages" aria-label={text.title}>
        <Head channels={channels} channel={channel} live={live} />
        {!channel && <NoChannel graph={thread.metadata} values={state.data.values} />}
        {channel && isEmpty && <Empty checkpoint={checkpoint} />}
        {!isEmpty && (
          <MessageList {...entries} facts={facts} tools={live.tools} isNewest={checkpoint === undefined} />
        )}
      </section>
    </OpenedProvider>
  );
}

/** Returns the rows. Those of the state are made again only if the state or the replaced versions changed, not with each token. */
function useEntries(stored: readonly ThreadMessage[], live: LiveView, isSettled: boolean) {
  const replacedKeys = replacedOf(live)
    .map(({ key }) => key)
    .join(" ");
  // The keys say whether the versions changed.
  const kept: Entry[] = useMemo(() => storedEntries(stored, replacedOf(live)), [stored, replacedKeys]);
  const ids = useMemo(() => new Set(stored.map(({ id }) => id)), [stored]);
  const writing = useMemo(() => liveEntries(ids, live, isSettled), [ids, live, isSettled]);
  return { stored: kept, live: writing };
}

function Head(props: { channels: MessageChannel[]; channel: MessageChannel | undefined; live: LiveView }) {
  const { channels, channel, live } = props;
  const isWriting = live.messages.some(({ status }) => status === "writing");
  return (
    <header className="row messages-head">
      {channel && <span className="muted small">{text.count(channel.messages.length)}</span>}
      {channels.length > 1 && channel && (
        <label className="row small">
          {text.channel}
          <select
            className="input messages-channel"
            value={channel.name}
            onChange={(event) => setQuery({ channel: event.target.value })}
          >
            {channels.map(({ name, subgraph }) => (
              <option key={`${subgraph}/${name}`} value={name}>
                {visibleText(text.channelName(name, subgraph))}
              </option>
            ))}
          </select>
        </label>
      )}
      {live.run === "running" && !live.isConnected && <span className="small">{text.notConnected}</span>}
      {live.run === "failed" && live.error && (
        <span className="small bad-text">{visibleText(text.failed(live.error))}</span>
      )}
      <p className="visually-hidden" role="status">
        {isWriting ? text.announceWriting : text.announceRun[live.run]}
      </p>
    </header>
  );
}

function Empty({ checkpoint }: { checkpoint: string | undefined }) {
  return (
    <Notice title={text.emptyTitle}>
      <p>{checkpoint === undefined ? text.emptyNext : text.emptyAtCheckpoint}</p>
    </Notice>
  );
}
