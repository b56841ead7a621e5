import type { ReactNode } from "react";

/** Names and values. Facts without a value are left out. */
export function Facts({ facts }: { facts: [name: string, value: ReactNode][] }) {
  const known = facts.filter(([, value]) => value !== undefined && value !== "" && value !== false);
  if (known.length === 0) return null;
  return (
    <dl className="agent-facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
