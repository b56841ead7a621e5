import { type FormEvent, useId, useState } from "react";

import type { Permission } from "../../api/types.ts";
import { useMay } from "../../app/me.ts";
import { common } from "../../text/common.ts";
import { operate } from "../../text/operate.ts";
import { Button } from "../../ui/Button.tsx";
import { Failure } from "../../ui/Notice.tsx";
import {
  type ApiKey,
  type ApiKeyWithSecret,
  createKey,
  refreshOperate,
  revokeKey,
  rotateKey,
} from "./api.ts";
import { Foreign } from "./Foreign.tsx";
import { Confirm, OpenDialog, useAction } from "./parts.tsx";

const text = operate.keys;
const PERMISSIONS = Object.keys(text.permissionHelp) as Permission[];

interface KeyDraft {
  name: string;
  principal: string;
  permissions: readonly Permission[];
  isRestricted: boolean;
  seconds: string;
}

interface IssueProps {
  onIssued: (key: ApiKeyWithSecret) => void;
  onClose: () => void;
}

export function CreateKeyDialog({ onIssued, onClose }: IssueProps) {
  const [draft, setDraft] = useState<KeyDraft>({
    name: "",
    principal: "",
    permissions: ["read"],
    isRestricted: false,
    seconds: "7776000",
  });
  const [isChecked, setIsChecked] = useState(false);
  const create = useAction((wanted: KeyDraft) => createKey(requestOf(wanted)), onIssued);
  const change = (part: Partial<KeyDraft>) => setDraft((before) => ({ ...before, ...part }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setIsChecked(true);
    if (draft.permissions.length > 0) create.run(draft);
  };
  return (
    <OpenDialog title={text.createTitle} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <KeyTexts draft={draft} onChange={change} />
        <PermissionFields draft={draft} onChange={change} />
        <p className="field-problem" role="alert">
          {isChecked && draft.permissions.length === 0 && text.noPermission}
        </p>
        <SecondsField
          label={text.lifetime}
          value={draft.seconds}
          options={text.lifetimes}
          onChange={(seconds) => change({ seconds })}
        />
        {create.error && <Failure error={create.error} />}
        <DialogButtons submit={text.submit} isBusy={create.isBusy} onClose={onClose} />
      </form>
    </OpenDialog>
  );
}

function requestOf(draft: KeyDraft): Parameters<typeof createKey>[0] {
  return {
    name: draft.name.trim(),
    permissions: [...draft.permissions],
    restricted: draft.isRestricted,
    ...(draft.principal.trim() && { principal: draft.principal.trim() }),
    ...(draft.seconds && { expires_in_seconds: Number(draft.seconds) }),
  };
}

interface DraftProps {
  draft: KeyDraft;
  onChange: (part: Partial<KeyDraft>) => void;
}

function KeyTexts({ draft, onChange }: DraftProps) {
  const fieldId = useId();
  return (["name", "principal"] as const).map((field) => (
    <div className="field" key={field}>
      <label htmlFor={`${fieldId}-${field}`}>{text[field]}</label>
      <input
        id={`${fieldId}-${field}`}
        autoComplete="off"
        value={draft[field]}
        aria-describedby={field === "principal" ? `${fieldId}-help` : undefined}
        onChange={(event) => onChange({ [field]: event.target.value })}
      />
      {field === "principal" && (
        <p id={`${fieldId}-help`} className="muted small">
          {text.principalHelp}
        </p>
      )}
    </div>
  ));
}

function PermissionFields({ draft, onChange }: DraftProps) {
  const may = useMay();
  const toggle = (permission: Permission, isOn: boolean) => {
    const others = draft.permissions.filter((each) => each !== permission);
    onChange({ permissions: isOn ? [...others, permission] : others });
  };
  return (
    <fieldset className="operate-choices">
      <legend>{text.permissions}</legend>
      {/* The server lets nobody grant what they do not have. */}
      {PERMISSIONS.filter(may).map((permission) => (
        <label key={permission}>
          <input
            type="checkbox"
            checked={draft.permissions.includes(permission)}
            onChange={(event) => toggle(permission, event.target.checked)}
          />
          <span>
            <strong>{permission}</strong>: {text.permissionHelp[permission]}
          </span>
        </label>
      ))}
      <label>
        <input
          type="checkbox"
          checked={draft.isRestricted}
          onChange={(event) => onChange({ isRestricted: event.target.checked })}
        />
        <span>
          <strong>{text.restricted}</strong>: {text.restrictedHelp}
        </span>
      </label>
    </fieldset>
  );
}

function SecondsField(props: {
  label: string;
  value: string;
  options: Readonly<Record<string, string>>;
  onChange: (seconds: string) => void;
}) {
  const fieldId = useId();
  // Names of fields that are numbers come in the order of the numbers.
  const options = Object.entries(props.options);
  return (
    <div className="field">
      <label htmlFor={fieldId}>{props.label}</label>
      <select id={fieldId} value={props.value} onChange={(event) => props.onChange(event.target.value)}>
        {options.map(([seconds, name]) => (
          <option key={seconds} value={seconds}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

function DialogButtons({
  submit,
  isBusy,
  onClose,
}: {
  submit: string;
  isBusy: boolean;
  onClose: () => void;
}) {
  return (
    <div className="dialog-actions">
      <Button onClick={onClose}>{common.cancel}</Button>
      <Button kind="primary" type="submit" disabled={isBusy}>
        {isBusy ? operate.working : submit}
      </Button>
    </div>
  );
}

export function RotateDialog({ apiKey, onIssued, onClose }: IssueProps & { apiKey: ApiKey }) {
  const [grace, setGrace] = useState("3600");
  const rotate = useAction((seconds: number) => rotateKey(apiKey.key_id, seconds), onIssued);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    rotate.run(Number(grace));
  };
  return (
    <OpenDialog title={text.rotateTitle} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <p>
          <Foreign text={apiKey.name || apiKey.key_id} />
        </p>
        <p>{text.rotateWhat}</p>
        <SecondsField label={text.grace} value={grace} options={text.graces} onChange={setGrace} />
        {rotate.error && <Failure error={rotate.error} />}
        <DialogButtons submit={text.rotateYes} isBusy={rotate.isBusy} onClose={onClose} />
      </form>
    </OpenDialog>
  );
}

export function RevokeDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const revoke = useAction(
    () => revokeKey(apiKey.key_id),
    () => {
      onClose();
      void refreshOperate("keys");
    },
  );
  return (
    <Confirm
      title={text.revokeTitle}
      yes={text.revokeYes}
      action={revoke}
      onYes={() => revoke.run()}
      onClose={onClose}
    >
      <p>
        <Foreign text={apiKey.name || apiKey.key_id} />
      </p>
      <p>{text.revokeWhat}</p>
    </Confirm>
  );
}
