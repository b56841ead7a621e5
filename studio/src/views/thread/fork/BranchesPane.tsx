import type { PaneProps } from "../pane.ts";

export function BranchesPane(_: PaneProps) {
  return null;
}
