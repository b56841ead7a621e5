import { useQuery } from "@tanstack/react-query";
import { schemasQuery } from "../../api/queries.ts";
import type { Assistant } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { useMay } from "../../app/me.ts";
import { isAgent, startKind } from "../../pure/input_form.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { start } from "../../text/start.ts";
import { AgentPicture } from "./AgentPicture.tsx";

/** The name that people know: of the five agents, what they do. An assistant that somebody made keeps its own. */
export function shownName({ graph_id: graph, name }: Assistant): string {
  return isAgent(graph) && name === graph ? start.agents[graph].name : visibleText(name);
}

/** What an assistant is for, and the way to start it. */
export function AssistantCard({ assistant }: { assistant: Assistant }) {
  const may = useMay();
  const { graph_id: graph, assistant_id: id } = assistant;
  const schemas = useQuery(schemasQuery(id));
  const kind = startKind(graph, schemas.data?.input_schema);
  const agent = isAgent(graph) ? start.agents[graph] : undefined;
  const name = shownName(assistant);
  const isChat = kind.kind === "chat";
  return (
    <li className="card assistant-card">
      <AgentPicture name={isAgent(graph) ? graph : isChat ? "chat" : "graph"} />
      <div className="stack">
        <h2>
          <bdi>{name}</bdi>
        </h2>
        <p>
          <bdi>{agent?.what ?? visibleText(assistant.description ?? start.graph(graph))}</bdi>
        </p>
        {agent && <p className="muted small">{agent.needs}</p>}
        {kind.kind === "closed" && <p className="muted small">{start.notFromHere}</p>}
        {may("run") && kind.kind !== "closed" && (
          <p>
            <Link
              className="button"
              href={hrefOf(["start", id])}
              aria-label={isChat ? start.chat(name) : start.choose(name)}
            >
              {isChat ? start.chat("") : start.submit}
            </Link>
          </p>
        )}
      </div>
    </li>
  );
}
