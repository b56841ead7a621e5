import { useQuery } from "@tanstack/react-query";

import { assistantsQuery, schemasQuery } from "../../api/queries.ts";
import type { Assistant } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { isAgent, startKind } from "../../pure/input_form.ts";
import { start } from "../../text/start.ts";
import { Failure, Loading, Notice } from "../../ui/Notice.tsx";
import { AssistantCard, shownName } from "./AssistantCard.tsx";
import { ChatView } from "./ChatView.tsx";
import { StartForm } from "./StartForm.tsx";
import "./start.css";

/** Starts assistants: all of them, or the one that the path names. */
export default function StartView({ path }: { path: string[] }) {
  const may = useMay();
  const found = useQuery(assistantsQuery);
  const [name, thread] = path;
  if (!found.data) {
    const problem = found.error && <Failure error={found.error} onRetry={() => void found.refetch()} />;
    return <div className="view">{problem ?? <Loading what={start.loading} />}</div>;
  }
  const assistant = found.data.find((each) => each.assistant_id === name || each.graph_id === name);
  if (assistant && may("run")) {
    return <Starter key={`${assistant.assistant_id} ${thread}`} assistant={assistant} thread={thread} />;
  }
  return (
    <div className="view">
      <header>
        <h1>{start.title}</h1>
      </header>
      {name && !assistant && <Notice title={start.unknownTitle} tone="warn" />}
      <p className="muted start-lead">{may("run") ? start.lead : start.noPermission}</p>
      <AssistantList assistants={found.data} />
    </div>
  );
}

/** The five agents come first: they need no knowledge of graphs. */
function AssistantList({ assistants }: { assistants: Assistant[] }) {
  if (assistants.length === 0) {
    return (
      <Notice title={start.noneTitle}>
        <p>{start.noneNext}</p>
      </Notice>
    );
  }
  const rank = ({ graph_id: graph }: Assistant) =>
    isAgent(graph) ? Object.keys(start.agents).indexOf(graph) : Number.MAX_SAFE_INTEGER;
  const ordered = assistants.toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
  return (
    <ul className="assistant-cards">
      {ordered.slice(0, CARDS_MAX).map((assistant) => (
        <AssistantCard key={assistant.assistant_id} assistant={assistant} />
      ))}
    </ul>
  );
}

/** More are found in the list of assistants. */
const CARDS_MAX = 100;

function Starter({ assistant, thread }: { assistant: Assistant; thread: string | undefined }) {
  const schemas = useQuery(schemasQuery(assistant.assistant_id));
  if (!schemas.data) {
    const problem = schemas.error && <Failure error={schemas.error} onRetry={() => void schemas.refetch()} />;
    return <div className="view">{problem ?? <Loading what={shownName(assistant)} />}</div>;
  }
  const schema = schemas.data.input_schema;
  const kind = startKind(assistant.graph_id, schema);
  if (kind.kind === "chat") {
    return <ChatView assistant={assistant} channel={kind.channel} schema={schema} thread={thread} />;
  }
  return (
    <div className="view">
      {kind.kind === "closed" ? (
        <Notice title={shownName(assistant)}>
          <p>{start.notFromHere}</p>
          <Link href={hrefOf(["start"])}>{start.all}</Link>
        </Notice>
      ) : (
        <StartForm
          assistant={assistant}
          schema={schema}
          agent={kind.kind === "agent" ? kind.agent : undefined}
        />
      )}
    </div>
  );
}
