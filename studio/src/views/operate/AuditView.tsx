import { useQuery } from "@tanstack/react-query";

import { ApiProblem } from "../../api/client.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf, usePageLocation } from "../../app/location.ts";
import { operate } from "../../text/operate.ts";
import { Badge, type Tone } from "../../ui/Badge.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { AUDIT_SIZE, type AuditEntry, type AuditPage, auditQuery } from "./api.ts";
import { type AuditKind, containsText, firstBroken, kindOf } from "./audit.ts";
import { type Column, DataTable } from "./DataTable.tsx";
import { Foreign } from "./Foreign.tsx";
import { Example, Fetched, Filters, Frame, NoMatch, SelectFilter, TextFilter } from "./parts.tsx";

const text = operate.audit;
const TONES: Readonly<Record<AuditKind, Tone>> = {
  request: "accent",
  outcome: "plain",
  answer: "good",
  tool: "label",
  other: "plain",
};

export default function AuditView() {
  const { query } = usePageLocation();
  const named = Number(query.get("before"));
  const before = Number.isSafeInteger(named) && named > 1 ? named : undefined;
  const audit = useQuery(auditQuery(before));
  return (
    <Frame title={text.title} lead={text.lead}>
      <Fetched query={audit} what={text.what} instead={noAudit}>
        {(page) =>
          page.head.seq === 0 ? (
            <Notice title={text.emptyTitle}>
              <p>{text.emptyNext}</p>
            </Notice>
          ) : (
            <Entries page={page} />
          )
        }
      </Fetched>
    </Frame>
  );
}

/** A server may keep no audit log, which is not a failure. */
function noAudit(error: Error) {
  if (!(error instanceof ApiProblem) || error.status !== 404) return undefined;
  return (
    <Notice title={text.offTitle}>
      <p>{text.offNext}</p>
      <Example text={text.offExample} />
    </Notice>
  );
}

function Entries({ page }: { page: AuditPage }) {
  const { query } = usePageLocation();
  const kind = query.get("kind");
  const wanted = query.get("q") ?? "";
  const shown = page.entries
    .filter((entry) => (!kind || kindOf(entry) === kind) && containsText(entry, wanted))
    .reverse();
  return (
    <>
      <Verification page={page} />
      <Filters>
        <SelectFilter name="kind" label={text.kind} options={Object.entries(text.kinds)} all={operate.all} />
        <TextFilter name="q" label={text.filter} />
      </Filters>
      <p className="muted small" role="status">
        {(kind || wanted) && text.filterNote(shown.length, page.entries.length)}
      </p>
      {shown.length === 0 ? <NoMatch filters={["kind", "q"]} /> : <AuditTable entries={shown} />}
      <AuditPager page={page} />
    </>
  );
}

function AuditTable({ entries }: { entries: readonly AuditEntry[] }) {
  const columns: Column<AuditEntry>[] = [
    { name: text.seq, isNumber: true, cell: (entry) => entry.seq },
    { name: text.at, cell: (entry) => <Time at={entry.at} /> },
    {
      name: text.who,
      cell: (entry) =>
        entry.principal ? (
          <Foreign text={entry.principal} max={60} />
        ) : (
          <span className="muted">{text.nobody}</span>
        ),
    },
    {
      name: text.action,
      isRowName: true,
      cell: (entry) => (
        <>
          <Badge tone={TONES[kindOf(entry)]}>{text.kinds[kindOf(entry)]}</Badge>{" "}
          <Foreign text={entry.action} max={80} isCode />
        </>
      ),
    },
    { name: text.resource, cell: (entry) => <Foreign text={entry.resource} max={80} isCode /> },
    { name: text.detail, cell: (entry) => <Detail entry={entry} /> },
  ];
  return (
    <DataTable caption={text.caption} columns={columns} rows={entries} keyOf={(entry) => String(entry.seq)} />
  );
}

/** Fields of the detail: there are few, and the server decides which. */
function Detail({ entry }: { entry: AuditEntry }) {
  const detail: unknown = entry.detail;
  if (detail === null || typeof detail !== "object") return <Foreign text={JSON.stringify(detail) ?? ""} />;
  return Object.entries(detail).map(([name, value]) => (
    <p key={name} className="small">
      <span className="muted">{name}: </span>
      <Foreign text={typeof value === "string" ? value : JSON.stringify(value)} max={48} isCode />
    </p>
  ));
}

function Verification({ page }: { page: AuditPage }) {
  const broken = firstBroken(page.entries);
  return (
    <>
      {broken && (
        <div role="alert">
          <Notice tone="bad" title={text.broken(broken.seq)}>
            <p>{text.brokenNext}</p>
            <Example text={text.verifyCommand} />
          </Notice>
        </div>
      )}
      <details className="card">
        <summary>{text.verifyTitle}</summary>
        <div className="stack">
          {!broken && <p>{text.linked(page.entries.length)}</p>}
          <p>{text.verifyWhy}</p>
          <Example text={text.verifyCommand} />
          <p className="muted small">{text.verifyKey}</p>
          <p>
            {text.end} <Foreign text={`${page.head.seq}:${page.head.hash}`} isCode />
          </p>
        </div>
      </details>
    </>
  );
}

function AuditPager({ page }: { page: AuditPage }) {
  const { path, query } = usePageLocation();
  const all = Object.fromEntries(query);
  const first = page.entries[0]?.seq ?? 1;
  const last = page.entries.at(-1)?.seq ?? page.head.seq;
  const at = (before: number | undefined) =>
    hrefOf(path, { ...all, before: before === undefined ? undefined : String(before) });
  const isNewest = last >= page.head.seq;
  return (
    <nav className="row" aria-label={operate.pages}>
      {!isNewest && (
        <Link className="button" href={at(undefined)}>
          {text.newest}
        </Link>
      )}
      {!isNewest && last + AUDIT_SIZE < page.head.seq && (
        <Link className="button" href={at(last + AUDIT_SIZE + 1)}>
          {text.newer}
        </Link>
      )}
      <span className="muted small">{operate.rows(first, last, page.head.seq)}</span>
      {first > 1 && (
        <Link className="button" href={at(first)}>
          {text.older}
        </Link>
      )}
    </nav>
  );
}
