import type { ForkPreview } from "../../../api/types.ts";
import { formatCost, formatCount } from "../../../pure/format.ts";
import { visibleText } from "../../../pure/visible_text.ts";
import { fork } from "../../../text/fork.ts";
import type { ForkChange } from "./fork_actions.ts";

/** Whether the visitor has to confirm what happens a second time. */
export function needsConfirmation(preview: ForkPreview): boolean {
  return preview.tools.some(({ effect }) => effect === "again" || effect === "unknown");
}

interface EffectsProps {
  preview: ForkPreview;
  change: ForkChange | undefined;
}

/** What a fork would repeat outside, the worst first, and what it costs. */
export function Effects({ preview, change }: EffectsProps) {
  const model = change?.mode === "assistant" ? change.context.model : undefined;
  const order = ["again", "unknown", "same", "none"];
  const classes = preview.tools.toSorted((a, b) => order.indexOf(a.effect) - order.indexOf(b.effect));
  const lines = classes.flatMap((each) => linesOf(preview, each));
  return (
    <section className="stack fork-effects">
      <h3>{fork.effects}</h3>
      <ul className="stack fork-lines">
        {lines.map(({ text, effect, name }) => (
          <li key={text} data-effect={effect}>
            <bdi>{text}</bdi> <span className="muted small">{fork.toolClass(name)}</span>
          </li>
        ))}
        {lines.length === 0 && <li data-effect="none">{fork.noTools}</li>}
        {preview.interrupts > 0 && <li data-effect="none">{fork.interrupts(preview.interrupts)}</li>}
      </ul>
      <p>
        <strong>{fork.cost}:</strong> {costLine(preview)}
      </p>
      {typeof model === "string" && preview.models.model_calls > 0 && (
        <p className="muted small">
          <bdi>{fork.otherModel(visibleText(model))}</bdi>
        </p>
      )}
      <p className="muted small">{fork.asBefore}</p>
    </section>
  );
}

interface EffectLine {
  text: string;
  effect: string;
  name: string;
}

function linesOf(
  preview: ForkPreview,
  { class: name, calls, tools, effect }: ForkPreview["tools"][number],
): EffectLine[] {
  const line = (text: string) => ({ text, effect, name });
  if (effect === "unknown") return [line(fork.unknown(tools, calls))];
  if (effect === "same") return [line(fork.same(tools, calls))];
  if (effect === "none") return [line(fork.reads(tools, calls))];
  // Each tool in words of its own: "2 mails", not "3 calls".
  return tools.map((tool) => {
    const count = preview.calls.filter((call) => call.tool === tool && call.class === name).length;
    return line(fork.again(tool, count));
  });
}

function costLine({ models }: ForkPreview): string {
  if (models.model_calls === 0) return fork.noModels;
  const calls = fork.modelCalls(formatCount(models.model_calls), models.model_calls === 1);
  return fork.costOf(
    formatCost(models),
    calls,
    formatCount(models.input_tokens),
    formatCount(models.output_tokens),
  );
}
