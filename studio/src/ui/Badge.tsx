import type { ReactNode } from "react";

export type Tone = "plain" | "good" | "warn" | "bad" | "accent" | "label";

export function Badge({
  tone = "plain",
  children,
  title,
}: {
  tone?: Tone;
  children: ReactNode;
  title?: string;
}) {
  return (
    <span className="badge" data-tone={tone} title={title}>
      {children}
    </span>
  );
}
