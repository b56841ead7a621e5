import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";

import { requestPage } from "../../api/client.ts";
import { isObject, type Json } from "../../api/json.ts";
import type { InboxItem } from "../../api/types.ts";
import { actionOf, bulkKey, subjectOf } from "../../pure/inbox_order.ts";
import { visibleText } from "../../pure/json_tree.ts";
import { inbox } from "../../text/inbox.ts";
import { text as page } from "../../text/index.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { LongText } from "../../ui/LongText.tsx";
import { Ticks } from "../../ui/Ticks.tsx";
import { VirtualRows } from "../../ui/VirtualRows.tsx";
import { acceptance } from "./answering.ts";
import { outgoingOf, submitAnswers } from "./outbox.ts";
import { PAGE } from "./useInbox.ts";

const text = inbox.bulk;
/** As many as a person can read. */
const ITEMS_MAX = 500;
const PAGES_MAX = 20;

/** Offers to approve items that ask for the same action, if there are others. */
export function BulkButton({ item, places }: { item: InboxItem; places: ReadonlyMap<number, InboxItem> }) {
  const [isOpen, setOpen] = useState(false);
  const key = bulkKey(item);
  const count = useMemo(
    () =>
      key && acceptance(item) ? [...places.values()].filter((other) => bulkKey(other) === key).length : 0,
    [item, key, places],
  );
  if (count < 2 && !isOpen) return null;
  return (
    <>
      <Button className="inbox-bulk" onClick={() => setOpen(true)}>
        {text.open(count)}
      </Button>
      <Dialog title={text.title} isOpen={isOpen} onClose={() => setOpen(false)}>
        <BulkForm item={item} onDone={() => setOpen(false)} />
      </Dialog>
    </>
  );
}

/** Collects the items of the same kind from the pages of their graph. */
function useIdentical(item: InboxItem) {
  const key = bulkKey(item);
  return useQuery({
    queryKey: ["identical", key],
    queryFn: async ({ signal }) => {
      const found: InboxItem[] = [];
      let offset: number | undefined = 0;
      for (let pages = 0; pages < PAGES_MAX && offset !== undefined && found.length < ITEMS_MAX; pages += 1) {
        const query = { graph_id: item.graph_id, limit: PAGE, offset };
        const answer: { items: InboxItem[]; next: number | undefined } = await requestPage(
          "/superstep/inbox",
          { query, signal },
        );
        found.push(...answer.items.filter((other) => bulkKey(other) === key && acceptance(other)));
        offset = answer.next;
      }
      return { items: found.slice(0, ITEMS_MAX), isCut: offset !== undefined || found.length > ITEMS_MAX };
    },
    staleTime: 0,
  });
}

/** The list to read before, and one button. What leaves meanwhile is refused by the server, item by item. */
function BulkForm({ item, onDone }: { item: InboxItem; onDone: () => void }) {
  const { data, error } = useIdentical(item);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const items = (data?.items ?? []).filter((each) => !outgoingOf(each));
  const chosen = items.filter((each) => !left.has(each.interrupt.id));
  const toggle = (id: string) =>
    setLeft((before) =>
      before.has(id) ? new Set([...before].filter((other) => other !== id)) : new Set(before).add(id),
    );
  const submit = () => {
    submitAnswers(chosen.map(acceptance).filter((given) => given !== undefined));
    onDone();
  };
  return (
    <>
      <p>
        <Ticks text={visibleText(text.read(actionOf(item) ?? ""))} />
      </p>
      {!data && <p role="status">{error ? String(error) : text.loading(items.length)}</p>}
      <div className="row">
        <Button onClick={() => setLeft(new Set())}>{text.all}</Button>
        <Button onClick={() => setLeft(new Set(items.map((each) => each.interrupt.id)))}>{text.none}</Button>
      </div>
      <BulkList items={items} left={left} onToggle={toggle} />
      {data?.isCut && <p className="muted">{text.cut(items.length)}</p>}
      <div className="dialog-actions">
        <Button onClick={onDone}>{page.common.cancel}</Button>
        <Button kind="primary" disabled={chosen.length === 0} onClick={submit}>
          {text.submit(chosen.length)}
        </Button>
      </div>
    </>
  );
}

interface BulkListProps {
  items: InboxItem[];
  left: ReadonlySet<string>;
  onToggle: (id: string) => void;
}

function BulkList({ items, left, onToggle }: BulkListProps) {
  const scroll = useRef<HTMLDivElement>(null);
  return (
    // The rows are drawn by a part that is not a list itself.
    // biome-ignore lint/a11y/useSemanticElements: see above.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it.
    <div ref={scroll} className="inbox-bulk-list" role="list" aria-label={text.list} tabIndex={0}>
      <VirtualRows
        count={items.length}
        estimate={90}
        scroll={scroll}
        role="listitem"
        keyOf={(at) => items[at]?.interrupt.id ?? String(at)}
        row={(at) => {
          const item = items[at];
          return item && <BulkRow item={item} isChosen={!left.has(item.interrupt.id)} onToggle={onToggle} />;
        }}
      />
    </div>
  );
}

function BulkRow({
  item,
  isChosen,
  onToggle,
}: {
  item: InboxItem;
  isChosen: boolean;
  onToggle: (id: string) => void;
}) {
  const { id } = item.interrupt;
  const subject = subjectOf(item);
  return (
    <div className="inbox-bulk-row">
      <label className="inbox-bulk-check">
        <input
          type="checkbox"
          checked={isChosen}
          aria-label={visibleText(text.item(subject))}
          onChange={() => onToggle(id)}
        />
      </label>
      <div>
        <strong>
          <bdi>{visibleText(subject)}</bdi>
        </strong>
        <Arguments item={item} />
      </div>
    </div>
  );
}

function Arguments({ item }: { item: InboxItem }) {
  const { value } = item.interrupt;
  const request = isObject(value) && isObject(value.action_request) ? value.action_request : {};
  const args = isObject(request.args) ? Object.entries(request.args) : [];
  const shown = (arg: Json) => (typeof arg === "string" ? arg : JSON.stringify(arg));
  return (
    <dl className="small inbox-args">
      {args.map(([name, arg]) => (
        <div key={name}>
          <dt className="muted">
            <bdi>{visibleText(name)}</bdi>
          </dt>
          <dd>
            <LongText text={shown(arg)} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
