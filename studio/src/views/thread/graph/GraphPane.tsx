import type { PaneProps } from "../pane.ts";

export function GraphPane(_: PaneProps) {
  return null;
}
