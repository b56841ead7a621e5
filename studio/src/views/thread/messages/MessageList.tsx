import { useVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useRef, useState } from "react";

import type { LiveTool } from "../../../pure/event_fold.ts";
import type { Entry } from "../../../pure/messages.ts";
import { messages as text } from "../../../text/messages.ts";
import { Button } from "../../../ui/Button.tsx";
import type { Facts } from "./facts.ts";
import { MessageItem } from "./MessageItem.tsx";

interface ListProps {
  stored: readonly Entry[];
  /** What comes after the stored ones; it changes with every frame. */
  live: readonly Entry[];
  facts: Facts;
  tools: ReadonlyMap<string, LiveTool>;
  isNewest: boolean;
}

const NO_TOOLS: ReadonlyMap<string, LiveTool> = new Map();

/** A conversation of any length. It follows the newest message only while the reader is there. */
export function MessageList({ stored, live, facts, tools, isNewest }: ListProps) {
  const scroller = useRef<HTMLElement>(null);
  const count = stored.length + live.length;
  const entryAt = (index: number) => (index < stored.length ? stored[index] : live[index - stored.length]);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => 140,
    overscan: 5,
    getItemKey: (index) => entryAt(index)?.key ?? index,
  });
  const { isAway, onScroll, toEnd } = useEnd(scroller);
  return (
    <div className="conversation">
      <section
        ref={scroller}
        className="conversation-scroll"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
        tabIndex={0}
        aria-label={text.list}
        onScroll={onScroll}
      >
        {/* biome-ignore lint/a11y/noRedundantRoles: Safari drops the role of lists without markers. */}
        <ol role="list" className="conversation-rows" style={{ blockSize: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ key, index, start }) => {
            const entry = entryAt(index);
            return (
              <li
                key={key}
                ref={rows.measureElement}
                data-index={index}
                aria-setsize={count}
                aria-posinset={index + 1}
                style={{ transform: `translateY(${start}px)` }}
              >
                {entry && (
                  <MessageItem {...{ entry, facts, isNewest }} tools={needsTools(entry) ? tools : NO_TOOLS} />
                )}
              </li>
            );
          })}
        </ol>
      </section>
      {isAway && (
        <Button className="conversation-end" onClick={toEnd}>
          {text.toNewest}
        </Button>
      )}
    </div>
  );
}

/** Whether a message has a call that may be running. */
function needsTools(entry: Entry): boolean {
  return entry.kind === "stored" && entry.results.size < entry.message.calls.length;
}

/** How near the end counts as there. */
const NEAR_PX = 32;

/** Keeps the end in view if the reader is there. Only the reader leaves it, by scrolling up. */
function useEnd(scroller: { current: HTMLElement | null }) {
  const isAtEnd = useRef(true);
  const lastTop = useRef(0);
  const [isAway, setIsAway] = useState(false);
  // After every draw: rows get their real size when they are drawn, and grow with each token.
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element && isAtEnd.current) element.scrollTop = element.scrollHeight;
  });
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    const isNear = element.scrollHeight - element.scrollTop - element.clientHeight <= NEAR_PX;
    if (isNear) isAtEnd.current = true;
    else if (element.scrollTop < lastTop.current - 1) isAtEnd.current = false;
    lastTop.current = element.scrollTop;
    setIsAway(!isAtEnd.current);
  };
  const toEnd = () => {
    isAtEnd.current = true;
    setIsAway(false);
    // The button goes away, so the focus goes where it led.
    scroller.current?.focus();
    scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  };
  return { isAway, onScroll, toEnd };
}
