import { useState } from "react";

import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { shortId } from "../../pure/format.ts";
import { common } from "../../text/common.ts";
import { operate } from "../../text/operate.ts";
import { Button } from "../../ui/Button.tsx";
import { beginning, withVisibleControls } from "./foreign.ts";

/** Text from the server: shown as it is, cut if it is long. */
export function Foreign({
  text,
  max = 160,
  isCode = false,
}: {
  text: string;
  max?: number;
  isCode?: boolean;
}) {
  const [isWhole, setIsWhole] = useState(false);
  const cut = beginning(text, max);
  const shown = withVisibleControls(isWhole ? text : cut.text);
  return (
    <>
      <bdi className={isCode ? "mono operate-foreign" : "operate-foreign"}>
        {shown}
        {cut.isCut && !isWhole && "…"}
      </bdi>
      {cut.isCut && (
        <Button
          kind="quiet"
          className="operate-more"
          aria-expanded={isWhole}
          onClick={() => setIsWhole(!isWhole)}
        >
          {isWhole ? operate.showLess : operate.showAll}
        </Button>
      )}
    </>
  );
}

/** The end of an id, which leads to its thread. */
export function ThreadLink({ id }: { id: string }) {
  return (
    <Link className="mono" href={hrefOf(["threads", id])} title={id}>
      <bdi>{withVisibleControls(shortId(id))}</bdi>
    </Link>
  );
}

/** Copies a text, and says whether it worked. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid(common.copied);
    } catch {
      setSaid(operate.copyFailed);
    }
  };
  return (
    <span className="row">
      <Button onClick={() => void copy()}>{label}</Button>
      <span role="status" className="small">
        {said}
      </span>
    </span>
  );
}
