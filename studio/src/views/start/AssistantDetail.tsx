import { useMutation, useQuery } from "@tanstack/react-query";
import type { Json } from "../../api/json.ts";
import type { Assistant, AssistantVersion } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { assistants as text } from "../../text/start.ts";
import { Badge } from "../../ui/Badge.tsx";
import { Button } from "../../ui/Button.tsx";
import { JsonTree } from "../../ui/JsonTree.tsx";
import { Failure, Loading } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { shownName } from "./AssistantCard.tsx";
import { applyVersion, versionsQuery } from "./assistant_actions.ts";

/** An assistant and its versions. */
export function AssistantDetail({ assistant }: { assistant: Assistant }) {
  const id = assistant.assistant_id;
  const versions = useQuery(versionsQuery(id));
  const may = useMay();
  return (
    <div className="stack">
      <header className="row">
        <h1>
          <bdi>{shownName(assistant)}</bdi>
        </h1>
        <Badge>
          <bdi>{visibleText(assistant.graph_id)}</bdi>
        </Badge>
        <span className="spacer" />
        <Link href={hrefOf(["assistants"])}>{text.unknownNext}</Link>
      </header>
      {assistant.description && (
        <p className="start-lead">
          <bdi>{visibleText(assistant.description)}</bdi>
        </p>
      )}
      <div className="row">
        {may("run") && (
          <Link className="button" data-kind="primary" href={hrefOf(["start", id])}>
            {text.start}
          </Link>
        )}
        {may("admin") && (
          <Link className="button" href={hrefOf(["assistants", id, "edit"])}>
            {text.edit}
          </Link>
        )}
        {may("run") && (
          <Link className="button" href={hrefOf(["assistants", id, "compare"])}>
            {text.compare}
          </Link>
        )}
      </div>
      <h2>{text.versions}</h2>
      {versions.error && <Failure error={versions.error} onRetry={() => void versions.refetch()} />}
      {versions.isPending && <Loading what={text.loadingVersions} />}
      <ol className="stack">
        {versions.data?.slice(0, 100).map((version) => (
          <VersionRow
            key={version.version}
            version={version}
            isInUse={version.version === assistant.version}
          />
        ))}
      </ol>
    </div>
  );
}

function VersionRow({ version, isInUse }: { version: AssistantVersion; isInUse: boolean }) {
  const may = useMay();
  const using = useMutation({ mutationFn: () => applyVersion(version.assistant_id, version.version) });
  const name = text.version(version.version);
  const settings: [string, Json][] = [
    [text.settings, version.context as Json],
    [text.config, version.config as unknown as Json],
    [text.metadata, version.metadata as Json],
  ];
  return (
    <li className="card stack">
      <div className="row">
        <h3>{name}</h3>
        {isInUse && <Badge tone="good">{text.inUse}</Badge>}
        <span className="muted small">
          <bdi>{visibleText(version.name)}</bdi> · <Time at={version.created_at} />
        </span>
        <span className="spacer" />
        {!isInUse && may("admin") && (
          <Button
            disabled={using.isPending}
            onClick={() => using.mutate()}
            aria-label={text.useOf(version.version)}
          >
            {text.use}
          </Button>
        )}
      </div>
      {using.error && <Failure error={using.error} onRetry={() => using.mutate()} />}
      {settings.map(([label, value]) => (
        <div key={label}>
          <h4 className="muted small">{label}</h4>
          {isEmpty(value) ? (
            <p className="muted">{text.none}</p>
          ) : (
            <JsonTree name={`${name}: ${label}`} value={value} />
          )}
        </div>
      ))}
    </li>
  );
}

function isEmpty(value: Json): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
