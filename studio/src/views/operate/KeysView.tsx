import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useRef, useState } from "react";

import { ApiProblem } from "../../api/client.ts";
import { useMay } from "../../app/me.ts";
import { operate } from "../../text/operate.ts";
import { Badge } from "../../ui/Badge.tsx";
import { Button } from "../../ui/Button.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { useNow } from "../../ui/now.ts";
import { Time } from "../../ui/Time.tsx";
import { type ApiKey, type ApiKeyWithSecret, keysQuery, PAGE_SIZE, refreshOperate } from "./api.ts";
import { type Column, DataTable } from "./DataTable.tsx";
import { CopyButton, Foreign } from "./Foreign.tsx";
import { CreateKeyDialog, RevokeDialog, RotateDialog } from "./KeyDialogs.tsx";
import { Example, Fetched, Frame, Pager, useOffset } from "./parts.tsx";

const text = operate.keys;
type OpenKeyDialog = { kind: "create" } | { kind: "rotate" | "revoke"; key: ApiKey };

export default function KeysView() {
  const may = useMay();
  const offset = useOffset();
  const keys = useQuery(keysQuery(offset));
  const [dialog, setDialog] = useState<OpenKeyDialog>();
  // Only here, not in the cache: it leaves with the view.
  const [secret, setSecret] = useState<ApiKeyWithSecret>();
  const close = () => setDialog(undefined);
  const issued = (key: ApiKeyWithSecret) => {
    close();
    setSecret(key);
    void refreshOperate("keys");
  };
  const create = may("admin") && keys.data && (
    <Button kind="primary" onClick={() => setDialog({ kind: "create" })}>
      {text.create}
    </Button>
  );
  return (
    <Frame title={text.title} lead={text.lead} actions={create}>
      {secret && <NewSecret issued={secret} onDone={() => setSecret(undefined)} />}
      <Fetched query={keys} what={text.what} instead={openServer}>
        {(found) => <KeyPage keys={found} offset={offset} onOpen={setDialog} />}
      </Fetched>
      {dialog?.kind === "create" && <CreateKeyDialog onIssued={issued} onClose={close} />}
      {dialog?.kind === "rotate" && <RotateDialog apiKey={dialog.key} onIssued={issued} onClose={close} />}
      {dialog?.kind === "revoke" && <RevokeDialog apiKey={dialog.key} onClose={close} />}
    </Frame>
  );
}

/** A server without authentication manages no keys. */
function openServer(error: Error) {
  if (!(error instanceof ApiProblem) || error.status !== 400) return undefined;
  return (
    <Notice tone="warn" title={text.openTitle}>
      <p>{text.openNext}</p>
      <Example text={text.openExample} />
    </Notice>
  );
}

interface KeyPageProps {
  keys: readonly ApiKey[];
  offset: number;
  onOpen: (dialog: OpenKeyDialog) => void;
}

function KeyPage({ keys, offset, onOpen }: KeyPageProps) {
  const may = useMay();
  if (keys.length === 0) {
    return (
      <Notice title={text.emptyTitle}>
        <p>{text.emptyNext}</p>
      </Notice>
    );
  }
  const shown = keys.slice(0, PAGE_SIZE);
  const columns: Column<ApiKey>[] = [
    { name: text.name, isRowName: true, cell: (key) => <KeyName apiKey={key} /> },
    { name: text.principal, cell: (key) => <Foreign text={key.principal} max={60} /> },
    { name: text.permissions, cell: (key) => <KeyPermissions apiKey={key} /> },
    { name: text.created, cell: (key) => <Time at={key.created_at} /> },
    { name: text.expires, cell: (key) => <KeyExpiry apiKey={key} /> },
  ];
  if (may("admin")) {
    columns.push({ name: operate.actions, cell: (key) => <KeyButtons apiKey={key} onOpen={onOpen} /> });
  }
  return (
    <>
      <DataTable caption={text.caption} columns={columns} rows={shown} keyOf={(key) => key.key_id} />
      <Pager offset={offset} shown={shown.length} size={PAGE_SIZE} hasNext={keys.length > PAGE_SIZE} />
    </>
  );
}

function KeyName({ apiKey }: { apiKey: ApiKey }) {
  return (
    <>
      {apiKey.name ? <Foreign text={apiKey.name} max={60} /> : <span className="muted">{text.noName}</span>}
      <p className="muted small">
        <Foreign text={apiKey.key_id} isCode />
      </p>
    </>
  );
}

function KeyPermissions({ apiKey }: { apiKey: ApiKey }) {
  return (
    <span className="row">
      {apiKey.permissions.map((permission) => (
        <Badge key={permission}>{permission}</Badge>
      ))}
      {apiKey.restricted && (
        <Badge tone="warn" title={text.restrictedHelp}>
          {text.restricted}
        </Badge>
      )}
    </span>
  );
}

function KeyExpiry({ apiKey }: { apiKey: ApiKey }) {
  const now = useNow();
  if (!apiKey.expires_at) return operate.never;
  const isOver = Date.parse(apiKey.expires_at) <= now;
  return isOver ? <Badge tone="bad">{text.expired}</Badge> : <Time at={apiKey.expires_at} />;
}

function KeyButtons({ apiKey, onOpen }: { apiKey: ApiKey; onOpen: KeyPageProps["onOpen"] }) {
  const now = useNow();
  if (apiKey.expires_at && Date.parse(apiKey.expires_at) <= now) return null;
  const name = apiKey.name || apiKey.key_id;
  return (
    <div className="operate-buttons">
      <Button aria-label={text.of(text.rotate, name)} onClick={() => onOpen({ kind: "rotate", key: apiKey })}>
        {text.rotate}
      </Button>
      <Button
        kind="danger"
        aria-label={text.of(text.revoke, name)}
        onClick={() => onOpen({ kind: "revoke", key: apiKey })}
      >
        {text.revoke}
      </Button>
    </div>
  );
}

/** The secret of a new key. It stays until the visitor has stored it. */
function NewSecret({ issued, onDone }: { issued: ApiKeyWithSecret; onDone: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const fieldId = useId();
  useEffect(() => {
    // After the dialog has returned the focus.
    const timer = setTimeout(() => field.current?.select(), 0);
    return () => clearTimeout(timer);
  }, []);
  return (
    <section className="card stack operate-secret" aria-labelledby={`${fieldId}-title`}>
      <h2 id={`${fieldId}-title`}>{text.secretTitle}</h2>
      <p>{text.secretWhy}</p>
      <div className="field">
        <label htmlFor={fieldId}>{text.secret}</label>
        <input id={fieldId} ref={field} readOnly value={issued.key} autoComplete="off" spellCheck={false} />
      </div>
      <div className="row">
        <CopyButton text={issued.key} label={text.copy} />
        <Button onClick={onDone}>{text.secretDone}</Button>
      </div>
    </section>
  );
}
