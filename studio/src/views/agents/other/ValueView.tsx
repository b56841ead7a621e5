import type { BudgetQuestion, ValueQuestion } from "../../../pure/agent_question.ts";
import { formatCount, formatMoney } from "../../../pure/format.ts";
import { agents } from "../../../text/agents.ts";
import { JsonTree } from "../../../ui/JsonTree.tsx";
import { Facts } from "../parts/Facts.tsx";
import { Words } from "../parts/Words.tsx";

const text = agents.other;

/** Any value: its text first, the rest as a tree. */
export function ValueView({ text: words, value }: ValueQuestion) {
  return (
    <div className="stack">
      {words && (
        <section className="agent-asked">
          <Words text={words} />
        </section>
      )}
      {value !== undefined && <JsonTree name={text.tree} value={value} />}
    </div>
  );
}

/** A budget that is used up. */
export function BudgetView({ why, level, meter, limit, shortBy }: BudgetQuestion) {
  const amount = (value: number) =>
    meter === "nano_dollars" ? formatMoney(value) : `${formatCount(value)} ${text.meter(meter)}`;
  return (
    <section className="agent-asked stack">
      <h3>{text.budget}</h3>
      <Words text={why} />
      <Facts
        facts={[
          [text.limit, `${amount(limit)} ${text.level[level] ?? ""}`],
          [text.shortBy, amount(shortBy)],
        ]}
      />
    </section>
  );
}
