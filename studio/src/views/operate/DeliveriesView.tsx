import { useQuery } from "@tanstack/react-query";
import type { Delivery } from "../../api/types.ts";
import { usePageLocation } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { operate } from "../../text/operate.ts";
import { Badge, type Tone } from "../../ui/Badge.tsx";
import { Button } from "../../ui/Button.tsx";
import { Failure, Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { deliveriesQuery, PAGE_SIZE, refreshOperate, repeatDelivery } from "./api.ts";
import { type Column, DataTable } from "./DataTable.tsx";
import { Foreign, ThreadLink } from "./Foreign.tsx";
import {
  Example,
  Fetched,
  Filters,
  Frame,
  NoMatch,
  Pager,
  SelectFilter,
  TextFilter,
  useAction,
  useOffset,
} from "./parts.tsx";

const text = operate.deliveries;
const TONES: Readonly<Record<string, Tone>> = { pending: "warn", delivered: "good", dead: "bad" };
const STATUSES: Readonly<Record<string, string>> = text.statuses;

export default function DeliveriesView() {
  const { query } = usePageLocation();
  const offset = useOffset();
  const status = query.get("status") ?? undefined;
  const run = query.get("run") ?? undefined;
  const deliveries = useQuery(deliveriesQuery(status, run, offset));
  return (
    <Frame title={text.title} lead={text.lead}>
      <Filters>
        <SelectFilter
          name="status"
          label={operate.status}
          options={Object.entries(STATUSES)}
          all={operate.all}
        />
        <TextFilter name="run" label={text.runFilter} />
      </Filters>
      <Fetched query={deliveries} what={text.what}>
        {(found) => {
          if (found.length === 0 && (status || run)) return <NoMatch filters={["status", "run"]} />;
          if (found.length === 0) return <NoDeliveries />;
          const shown = found.slice(0, PAGE_SIZE);
          return (
            <>
              <DeliveryTable deliveries={shown} />
              <Pager
                offset={offset}
                shown={shown.length}
                size={PAGE_SIZE}
                hasNext={found.length > PAGE_SIZE}
              />
            </>
          );
        }}
      </Fetched>
    </Frame>
  );
}

function NoDeliveries() {
  return (
    <Notice title={text.emptyTitle}>
      <p>{text.emptyNext}</p>
      <Example text={text.emptyExample} />
    </Notice>
  );
}

function DeliveryTable({ deliveries }: { deliveries: readonly Delivery[] }) {
  const may = useMay();
  const again = useAction(repeatDelivery, () => void refreshOperate("deliveries"));
  const columns: Column<Delivery>[] = [
    {
      name: text.address,
      isRowName: true,
      cell: (row) => <Foreign text={row.webhook} max={80} isCode />,
    },
    { name: operate.status, cell: (row) => <DeliveryStatus delivery={row} /> },
    { name: text.attempts, isNumber: true, cell: (row) => row.attempts },
    {
      name: text.nextAttempt,
      cell: (row) => (row.next_attempt_at ? <Time at={row.next_attempt_at} /> : "—"),
    },
    { name: text.error, cell: (row) => (row.error ? <Foreign text={row.error} /> : "—") },
    { name: text.event, cell: (row) => <Foreign text={row.event} max={40} /> },
    { name: operate.thread, cell: (row) => <ThreadLink id={row.thread_id} /> },
    { name: text.created, cell: (row) => <Time at={row.created_at} /> },
  ];
  if (may("edit")) {
    columns.push({
      name: operate.actions,
      cell: (row) => {
        const label = row.status === "pending" ? text.now : text.again;
        return (
          <Button
            aria-label={text.againOf(label, visibleText(row.webhook))}
            disabled={again.isBusy}
            onClick={() => again.run(row.delivery_id)}
          >
            {label}
          </Button>
        );
      },
    });
  }
  return (
    <>
      {again.error && <Failure error={again.error} />}
      <DataTable
        caption={text.caption}
        columns={columns}
        rows={deliveries}
        keyOf={(row) => row.delivery_id}
      />
    </>
  );
}

function DeliveryStatus({ delivery }: { delivery: Delivery }) {
  return (
    <>
      <Badge tone={TONES[delivery.status] ?? "plain"}>{STATUSES[delivery.status] ?? delivery.status}</Badge>
      {delivery.status === "dead" && <p className="muted small">{text.dead}</p>}
    </>
  );
}
