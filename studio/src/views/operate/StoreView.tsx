import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { ApiProblem } from "../../api/client.ts";
import type { StoreItem } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, usePageLocation } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { operate } from "../../text/operate.ts";
import { Button } from "../../ui/Button.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { itemsQuery, NAMESPACES_MAX, namespacesQuery, PAGE_SIZE } from "./api.ts";
import { type Column, DataTable } from "./DataTable.tsx";
import { Foreign } from "./Foreign.tsx";
import { NamespaceTree } from "./NamespaceTree.tsx";
import { fieldFilter, partsOf } from "./namespaces.ts";
import { Fetched, Filters, Frame, NoMatch, Pager, TextFilter, useOffset } from "./parts.tsx";
import { ItemDialog, SelectedItem } from "./StoreItems.tsx";

const text = operate.store;

export default function StoreView() {
  const may = useMay();
  const { query } = usePageLocation();
  const [isCreating, setIsCreating] = useState(false);
  const namespaces = useQuery(namespacesQuery(partsOf(query.get("prefix"))));
  const create = may("edit") && <Button onClick={() => setIsCreating(true)}>{text.create}</Button>;
  return (
    <Frame title={text.title} lead={text.lead} actions={create}>
      <Fetched query={namespaces} what={text.what} instead={noStore}>
        {(data) =>
          data.namespaces.length === 0 && !query.get("prefix") ? (
            <Notice title={text.emptyTitle}>
              <p>{text.emptyNext}</p>
            </Notice>
          ) : (
            <div className="operate-store">
              <section className="card stack" aria-label={text.namespaces}>
                <h2>{text.namespaces}</h2>
                <TextFilter name="prefix" label={text.begin} help={text.beginHelp} />
                <NamespaceTree paths={data.namespaces} />
                {data.namespaces.length === NAMESPACES_MAX && (
                  <p className="muted small">{text.truncated(NAMESPACES_MAX)}</p>
                )}
              </section>
              <StoreItems />
            </div>
          )
        }
      </Fetched>
      {isCreating && <ItemDialog namespace={partsOf(query.get("ns"))} onClose={() => setIsCreating(false)} />}
    </Frame>
  );
}

/** A server may have no store, which is not a failure. */
function noStore(error: Error) {
  if (!(error instanceof ApiProblem) || error.status !== 400) return undefined;
  return (
    <Notice title={text.noStore}>
      <p>{text.noStoreNext}</p>
    </Notice>
  );
}

function StoreItems() {
  const { query } = usePageLocation();
  const offset = useOffset();
  const namespace = partsOf(query.get("ns"));
  const filter = fieldFilter(query.get("field") ?? "", query.get("value") ?? "");
  const items = useQuery(itemsQuery(namespace, filter, offset));
  const key = query.get("key");
  return (
    <section className="stack" aria-label={text.items}>
      <h2>
        <Foreign text={namespace.join(" › ") || text.everything} />
      </h2>
      <Filters>
        <TextFilter name="field" label={text.field} />
        <TextFilter name="value" label={text.value} />
      </Filters>
      <p className="muted small">{text.searchHelp}</p>
      {key !== null && (
        <SelectedItem namespace={query.get("in") ?? ""} itemKey={key} known={items.data ?? NO_ITEMS} />
      )}
      <Fetched query={items} what={text.items}>
        {(found) => <ItemPage items={found} offset={offset} isFiltered={filter !== undefined} />}
      </Fetched>
    </section>
  );
}

const NO_ITEMS: readonly StoreItem[] = [];

function ItemPage(props: { items: readonly StoreItem[]; offset: number; isFiltered: boolean }) {
  const { items, offset, isFiltered } = props;
  if (items.length === 0 && isFiltered) return <NoMatch filters={["field", "value"]} />;
  if (items.length === 0) {
    return (
      <Notice title={text.emptyHere}>
        <p>{text.emptyHereNext}</p>
      </Notice>
    );
  }
  const shown = items.slice(0, PAGE_SIZE);
  return (
    <>
      <ItemTable items={shown} />
      <Pager offset={offset} shown={shown.length} size={PAGE_SIZE} hasNext={items.length > PAGE_SIZE} />
    </>
  );
}

function ItemTable({ items }: { items: readonly StoreItem[] }) {
  const { path, query } = usePageLocation();
  const all = Object.fromEntries(query);
  const columns: Column<StoreItem>[] = [
    {
      name: text.key,
      isRowName: true,
      cell: (item) => (
        <Link
          href={hrefOf(path, { ...all, in: item.namespace.join("."), key: item.key })}
          aria-current={query.get("key") === item.key && query.get("in") === item.namespace.join(".")}
        >
          <Foreign text={item.key} max={80} />
        </Link>
      ),
    },
    { name: text.namespace, cell: (item) => <Foreign text={item.namespace.join(".")} max={80} isCode /> },
    { name: text.preview, cell: (item) => <Preview item={item} /> },
    { name: text.changed, cell: (item) => <Time at={item.updated_at} /> },
  ];
  return (
    <DataTable
      caption={text.caption}
      columns={columns}
      rows={items}
      keyOf={(item) => JSON.stringify([item.namespace, item.key])}
    />
  );
}

/** The beginning of a value; the item itself has all of it. */
function Preview({ item }: { item: StoreItem }) {
  const json = JSON.stringify(item.value);
  return <Foreign text={json.length > 100 ? `${json.slice(0, 100)}…` : json} isCode />;
}
