import { TickedWord } from "./Words.tsx";

/** Sentences to read before one answers. */
export function Notes({
  title,
  notes,
  tone = "warn",
}: {
  title: string;
  notes: string[];
  tone?: "warn" | "bad" | "plain";
}) {
  if (notes.length === 0) return null;
  return (
    <div className="notice" data-tone={tone}>
      <strong>{title}</strong>
      <ul className="agent-list">
        {notes.map((note, at) => (
          <li key={at} className="agent-note">
            <TickedWord text={note} />
          </li>
        ))}
      </ul>
    </div>
  );
}
