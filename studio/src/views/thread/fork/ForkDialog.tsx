import type { PaneProps } from "../pane.ts";

export interface ForkDialogProps extends PaneProps {
  /** The checkpoint to fork at. */
  checkpoint: string;
  isOpen: boolean;
  onClose: () => void;
}

export function ForkDialog(_: ForkDialogProps) {
  return null;
}
