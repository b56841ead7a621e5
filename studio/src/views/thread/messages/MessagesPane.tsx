import type { PaneProps } from "../pane.ts";

export function MessagesPane(_: PaneProps) {
  return null;
}
