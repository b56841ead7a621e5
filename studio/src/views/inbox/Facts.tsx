import { isObject, type Json } from "../../api/json.ts";
import type { InboxItem } from "../../api/types.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { formatCost } from "../../pure/format.ts";
import { visibleText } from "../../pure/json_tree.ts";
import { inbox } from "../../text/inbox.ts";
import { Badge } from "../../ui/Badge.tsx";
import { JsonTree } from "../../ui/JsonTree.tsx";
import { LongText } from "../../ui/LongText.tsx";
import { Time } from "../../ui/Time.tsx";

const text = inbox.facts;

/** What a person needs to know besides the question: by when, what it cost, which labels it has. */
export function Facts({ item }: { item: InboxItem }) {
  const { cost } = item;
  return (
    <dl className="inbox-facts">
      <Fact name={text.deadline}>
        {item.deadline ? (
          <>
            {item.is_overdue && <Badge tone="bad">{text.overdue}</Badge>} <Time at={item.deadline} />.{" "}
            {text.after[item.on_deadline]}
          </>
        ) : (
          text.noDeadline
        )}
      </Fact>
      <Fact name={text.labels}>
        <Labels value={item.interrupt.value} />
      </Fact>
      <Fact name={text.cost}>
        {formatCost(cost)}{" "}
        <span className="muted">
          ({text.calls(cost.model_calls, cost.input_tokens + cost.output_tokens)})
        </span>
      </Fact>
      <Fact name={text.asked}>
        <Time at={item.asked_at} /> · <Link href={hrefOf(["threads", item.thread_id])}>{text.thread}</Link>
      </Fact>
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Labels({ value }: { value: unknown }) {
  const labels = labelsOf(value);
  if (!labels) return <span className="muted">{text.unknownLabels}</span>;
  if (labels.length === 0) return text.noLabels;
  return (
    <span className="row">
      {labels.map((label) => (
        <Badge key={label} tone="label">
          <bdi>{visibleText(label.slice(0, 80))}</bdi>
        </Badge>
      ))}
    </span>
  );
}

/** The labels of what is shown; `undefined` if the interrupt does not say. */
function labelsOf(value: unknown): string[] | undefined {
  const asked = Array.isArray(value) ? value : [value];
  const lists = asked.map((each) => (isObject(each) ? each.labels : undefined)).filter(Array.isArray);
  if (lists.length === 0) return undefined;
  return [
    ...new Set(lists.flat().map((label) => (typeof label === "string" ? label : JSON.stringify(label)))),
  ];
}

/** Why it asks, and what it found: text of the agent. The question above shows what it understood of it; this is all of it. */
export function Reasons({ item }: { item: InboxItem }) {
  const { description, evidence } = item;
  return (
    <>
      {typeof description === "string" && description.trim() !== "" && (
        <details className="inbox-reason">
          <summary>{text.why}</summary>
          <p className="inbox-text">
            <LongText text={description} first={4000} />
          </p>
        </details>
      )}
      {evidence !== null && evidence !== undefined && (
        <section className="inbox-reason">
          <h3>{text.evidence}</h3>
          <Evidence value={evidence as Json} />
        </section>
      )}
    </>
  );
}

function Evidence({ value }: { value: Json }) {
  if (typeof value === "string") {
    return (
      <p className="inbox-text">
        <LongText text={value} />
      </p>
    );
  }
  if (Array.isArray(value) && value.length <= 50 && value.every((item) => typeof item === "string")) {
    return (
      <ul className="inbox-evidence">
        {value.map((item, at) => (
          <li key={at}>
            <LongText text={String(item)} />
          </li>
        ))}
      </ul>
    );
  }
  return <JsonTree name={text.evidence} value={value} />;
}
