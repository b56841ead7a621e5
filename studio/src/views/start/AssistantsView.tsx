import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { assistantsQuery } from "../../api/queries.ts";
import type { Assistant } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { fork } from "../../text/fork.ts";
import { assistants as text } from "../../text/start.ts";
import { Button } from "../../ui/Button.tsx";
import { Failure, Loading, Notice } from "../../ui/Notice.tsx";
import { Time } from "../../ui/Time.tsx";
import { shownName } from "./AssistantCard.tsx";
import { AssistantDetail } from "./AssistantDetail.tsx";
import { VersionCompare } from "./VersionCompare.tsx";
import { VersionForm } from "./VersionForm.tsx";
import "./start.css";

/** The assistants, one of them with its versions, or a form for a new one. */
export default function AssistantsView({ path }: { path: string[] }) {
  const found = useQuery(assistantsQuery);
  return (
    <div className="view">
      {found.data ? (
        <Content path={path} all={found.data} />
      ) : (
        (found.error && <Failure error={found.error} onRetry={() => void found.refetch()} />) || (
          <Loading what={text.loading} />
        )
      )}
    </div>
  );
}

function Content({ path, all }: { path: string[]; all: Assistant[] }) {
  const may = useMay();
  const [id, page] = path;
  if (id === undefined) return <AssistantTable all={all} />;
  if (id === "new" && may("admin"))
    return <VersionForm graphs={[...new Set(all.map((each) => each.graph_id))]} />;
  const assistant = all.find((each) => each.assistant_id === id);
  if (!assistant) return <Unknown />;
  if (page === "edit" && may("admin")) return <VersionForm key={id} assistant={assistant} graphs={[]} />;
  if (page === "compare" && may("run")) return <VersionCompare key={id} assistant={assistant} />;
  return <AssistantDetail key={id} assistant={assistant} />;
}

function Unknown() {
  return (
    <Notice title={text.unknownTitle}>
      <Link href={hrefOf(["assistants"])}>{text.unknownNext}</Link>
    </Notice>
  );
}

const PAGE = 100;

function AssistantTable({ all }: { all: Assistant[] }) {
  const may = useMay();
  const [shown, setShown] = useState(PAGE);
  return (
    <div className="stack">
      <header className="row">
        <h1>{text.title}</h1>
        <span className="spacer" />
        {may("admin") && (
          <Link className="button" data-kind="primary" href={hrefOf(["assistants", "new"])}>
            {text.create}
          </Link>
        )}
      </header>
      <p className="muted start-lead">{text.lead}</p>
      <div className="table-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">{text.name}</th>
              <th scope="col">{text.graph}</th>
              <th scope="col">{text.latest}</th>
              <th scope="col">{text.changed}</th>
            </tr>
          </thead>
          <tbody>
            {all.slice(0, shown).map((assistant) => (
              <Row key={assistant.assistant_id} assistant={assistant} />
            ))}
          </tbody>
        </table>
      </div>
      {all.length > shown && (
        <Button onClick={() => setShown(shown + PAGE)}>
          {fork.showMore(Math.min(PAGE, all.length - shown))}
        </Button>
      )}
    </div>
  );
}

function Row({ assistant }: { assistant: Assistant }) {
  const { assistant_id: id, graph_id: graph, version, description } = assistant;
  return (
    <tr>
      <td>
        <Link href={hrefOf(["assistants", id])}>
          <bdi>{shownName(assistant)}</bdi>
        </Link>
        {description && (
          <p className="muted small">
            <bdi>{visibleText(description.slice(0, 200))}</bdi>
          </p>
        )}
      </td>
      <td>
        <bdi className="mono">{visibleText(graph)}</bdi>
      </td>
      <td>{text.version(version)}</td>
      <td>
        <Time at={assistant.updated_at} />
      </td>
    </tr>
  );
}
