import { type ReactNode, useId } from "react";
import { visibleText } from "../../../pure/visible_text.ts";

/** A part of a view of an agent, with a heading that names it. */
export function Section(props: { title: string; level?: 2 | 3; aside?: ReactNode; children: ReactNode }) {
  const id = useId();
  const Heading = props.level === 3 ? "h3" : "h2";
  return (
    <section className="agent-section" aria-labelledby={id}>
      <div className="row">
        <Heading id={id}>
          <bdi>{visibleText(props.title)}</bdi>
        </Heading>
        {props.aside}
      </div>
      {props.children}
    </section>
  );
}
