import { relativeTime } from "../pure/format.ts";
import { useNow } from "./now.ts";

/** A time, relative to now. The exact one is its title. */
export function Time({ at }: { at: string }) {
  const now = useNow();
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {relativeTime(Date.parse(at), now)}
    </time>
  );
}
