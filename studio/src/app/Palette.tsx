import { text } from "../text/index.ts";
import { Button } from "../ui/Button.tsx";

export function Palette() {
  return <Button>{text.common.palette}</Button>;
}
