import type { PaneProps } from "../pane.ts";

export function TracePane(_: PaneProps) {
  return null;
}
