import { isObject } from "../../../api/json.ts";
import { Link } from "../../../app/Link.tsx";
import { hrefOf, usePageLocation } from "../../../app/location.ts";
import { visibleText } from "../../../pure/markdown.ts";
import { messages as text } from "../../../text/messages.ts";
import { thread as threadText } from "../../../text/thread.ts";
import { Notice } from "../../../ui/Notice.tsx";
import { hasAgentPane } from "../../agents/AgentPane.tsx";

/** How many channels are named. */
const NAMED_MAX = 12;

/** For agents that keep no messages: where their content is instead. */
export function NoChannel({ graph, values }: { graph: unknown; values: unknown }) {
  const { path, query } = usePageLocation();
  const names = isObject(values) ? Object.keys(values) : [];
  const name = isObject(graph) ? graph.graph_id : undefined;
  const tabs = threadText.view.tabs;
  const has = typeof name === "string" && hasAgentPane(name);
  const to = (tab: keyof typeof tabs) => hrefOf(path, { ...Object.fromEntries(query), tab });
  if (names.length === 0) return <Notice title={text.emptyTitle}>{<p>{text.noChannels}</p>}</Notice>;
  return (
    <Notice title={text.noChannelTitle}>
      <p>{text.noChannelNext}</p>
      <ul className="row">
        {has && (
          <li>
            <Link className="button" href={to("agent")}>
              {tabs.agent}
            </Link>
          </li>
        )}
        <li>
          <Link className="button" href={to("state")}>
            {tabs.state}
          </Link>
        </li>
        <li>
          <Link className="button" href={to("trace")}>
            {tabs.trace}
          </Link>
        </li>
      </ul>
      <p className="small muted">
        {text.channelsAre} <bdi>{visibleText(names.slice(0, NAMED_MAX).join(", "))}</bdi>
        {names.length > NAMED_MAX && "…"}
      </p>
    </Notice>
  );
}
