import { isObject, type Json, textOf } from "../../../api/json.ts";
import type { ThreadState } from "../../../api/types.ts";
import { agents } from "../../../text/agents.ts";
import { Section } from "../parts/Section.tsx";
import { Words } from "../parts/Words.tsx";
import { ChosenCall } from "./ChosenCall.tsx";
import { Conversation } from "./Conversation.tsx";
import { ResultView } from "./ResultView.tsx";

const text = agents.atris;

/** A thread of `atris`: the question, the call that it chose with its parameters, and the result as a table. */
export function AtrisPane({ state }: { state: ThreadState }) {
  const values = isObject(state.values) ? state.values : {};
  const query = textOf(values, "query");
  const error = textOf(values, "error");
  const response: Json = values.response ?? null;
  const second: Json = values.secondaryResponse ?? null;
  return (
    <div className="stack">
      <Section title={text.question}>
        {query ? <Words text={query} /> : <p className="muted">{text.noQuestion}</p>}
      </Section>
      {query && <ChosenCall values={values} />}
      {error && (
        <div className="notice" data-tone="bad">
          <strong>{text.error}</strong>
          <Words text={error} />
        </div>
      )}
      {query && (
        <Section title={text.result}>
          {response === null ? (
            <p className="muted">{text.noResult}</p>
          ) : (
            <ResultView name={text.result} value={response} />
          )}
        </Section>
      )}
      {second !== null && (
        <Section title={text.resultOf}>
          <ResultView name={text.resultOf} value={second} />
        </Section>
      )}
      {textOf(values, "formattedResponse") && (
        <Section title={text.answer}>
          <Words text={textOf(values, "formattedResponse") ?? ""} />
        </Section>
      )}
      <Conversation history={values.messageHistory} notes={values.messages} />
    </div>
  );
}
