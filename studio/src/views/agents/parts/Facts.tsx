import type { ReactNode } from "react";
import { visibleText } from "../../../pure/visible_text.ts";

/** Names and values. Facts without a value are left out. */
export function Facts({ facts }: { facts: [name: string, value: ReactNode][] }) {
  const known = facts.filter(([, value]) => value !== undefined && value !== "" && value !== false);
  if (known.length === 0) return null;
  return (
    <dl className="agent-facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>
            <bdi>{visibleText(name)}</bdi>
          </dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
