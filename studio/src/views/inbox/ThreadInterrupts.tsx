import { inbox as text } from "../../text/inbox.ts";
import { QuestionGroup } from "./QuestionGroup.tsx";
import { useThreadItems } from "./useInbox.ts";
import "./inbox.css";

/** The open interrupts of one thread, with the forms to answer them. Nothing if there are none. */
export function ThreadInterrupts({ thread }: { thread: string }) {
  const items = useThreadItems(thread);
  if (items.length === 0) return null;
  return (
    <section className="stack" aria-label={text.thread.title}>
      <QuestionGroup group={items} current={undefined} />
    </section>
  );
}
