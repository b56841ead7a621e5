import { useQuery } from "@tanstack/react-query";
import { useMemo, useRef } from "react";

import type { Page } from "../../api/client.ts";
import { threadsQuery } from "../../api/queries.ts";
import type { Thread } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, usePageLocation } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import {
  type FilterFields,
  fieldsOf,
  filterOf,
  isFiltered,
  PAGE_LENGTH,
  queryOf,
} from "../../pure/thread_filter.ts";
import { thread as text } from "../../text/thread.ts";
import { Failure, Loading, Notice } from "../../ui/Notice.tsx";
import { VirtualRows } from "../../ui/VirtualRows.tsx";
import { ThreadFilters } from "./ThreadFilters.tsx";
import { ThreadRow } from "./ThreadRow.tsx";

/** All threads, with filters that are part of the address. */
export function ThreadList() {
  const { query } = usePageLocation();
  const fields = useMemo(() => fieldsOf(query), [query]);
  const { filter, problems } = useMemo(() => filterOf(fields), [fields]);
  const { data, error, refetch } = useQuery(threadsQuery(filter));
  return (
    <div className="view threads">
      <header>
        <h1>{text.list.title}</h1>
        <span className="muted" role="status">
          {data && text.list.count(data.items.length, data.total)}
        </span>
      </header>
      <ThreadFilters fields={fields} problems={problems} />
      {error && <Failure error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading what={text.list.what} />}
      {data && <Found page={data} fields={fields} />}
    </div>
  );
}

function Found({ page, fields }: { page: Page<Thread>; fields: FilterFields }) {
  // The page scrolls as a whole, so that a phone has one thing to scroll.
  const scroll = useRef(document.getElementById("main"));
  const { items } = page;
  if (items.length === 0) return <NoThreads fields={fields} />;
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: its rows are placed by elements in between. */}
      <div className="thread-rows" role="list" aria-label={text.list.title}>
        <VirtualRows
          count={items.length}
          estimate={66}
          scroll={scroll}
          role="listitem"
          keyOf={(index) => items[index]?.thread_id ?? ""}
          row={(index) => {
            const thread = items[index];
            return thread && <ThreadRow thread={thread} />;
          }}
        />
      </div>
      <Pages fields={fields} page={page} />
    </>
  );
}

function NoThreads({ fields }: { fields: FilterFields }) {
  const may = useMay();
  if (isFiltered(fields) || fields.page > 1) {
    return (
      <Notice title={text.list.noneTitle}>
        <p>{text.list.noneNext}</p>
        <Link href={hrefOf(["threads"])}>{text.list.clear}</Link>
      </Notice>
    );
  }
  return (
    <Notice title={text.list.emptyTitle}>
      <p>{text.list.emptyNext}</p>
      {may("run") && <Link href={hrefOf(["start"])}>{text.list.start}</Link>}
    </Notice>
  );
}

function Pages({ fields, page }: { fields: FilterFields; page: Page<Thread> }) {
  const hasNext = page.next !== undefined || (page.total ?? 0) > fields.page * PAGE_LENGTH;
  if (fields.page === 1 && !hasNext) return null;
  const href = (number: number) => hrefOf(["threads"], queryOf({ ...fields, page: number }));
  return (
    <nav className="row" aria-label={text.list.pages}>
      {fields.page > 1 && (
        <Link className="button" href={href(fields.page - 1)}>
          {text.list.previous}
        </Link>
      )}
      <span className="muted">{text.list.page(fields.page)}</span>
      {hasNext && (
        <Link className="button" href={href(fields.page + 1)}>
          {text.list.next}
        </Link>
      )}
    </nav>
  );
}
