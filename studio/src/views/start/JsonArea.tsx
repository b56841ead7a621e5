import { readJson } from "../../pure/input_form.ts";
import { start } from "../../text/start.ts";

interface JsonAreaProps {
  id: string;
  label: string;
  hint?: string;
  text: string;
  onChange: (text: string) => void;
  /** What is wrong besides the syntax. */
  problem?: string | undefined;
  rows?: number;
}

/** JSON as text. It stays as it was typed, and says what is wrong with it. */
export function JsonArea({ id, label, hint, text, onChange, problem, rows = 6 }: JsonAreaProps) {
  const read = readJson(text);
  const wrong = "problem" in read ? start.jsonProblem(read.problem) : problem;
  const described = [hint && `${id}-hint`, wrong && `${id}-problem`].filter(Boolean).join(" ");
  return (
    <div className="field">
      <label htmlFor={id}>
        <bdi>{label}</bdi>
      </label>
      <textarea
        id={id}
        className="mono json-area"
        dir="ltr"
        rows={Math.min(20, Math.max(rows, text.split("\n", 20).length))}
        spellCheck={false}
        value={text}
        onChange={(event) => onChange(event.target.value)}
        aria-invalid={wrong !== undefined}
        aria-describedby={described || undefined}
      />
      {hint && (
        <p id={`${id}-hint`} className="muted small">
          {hint}
        </p>
      )}
      {wrong && (
        <p id={`${id}-problem`} className="field-problem">
          {wrong}
        </p>
      )}
    </div>
  );
}
