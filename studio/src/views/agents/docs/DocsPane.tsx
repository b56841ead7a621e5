import { useMemo, useState } from "react";

import type { ThreadState } from "../../../api/types.ts";
import { type DocsPage, docsPagesOf } from "../../../pure/page_diff.ts";
import { agents } from "../../../text/agents.ts";
import { Badge } from "../../../ui/Badge.tsx";
import { Button } from "../../../ui/Button.tsx";
import { FileList } from "../parts/FileList.tsx";
import { useResultFiles } from "../parts/files.ts";
import { Section } from "../parts/Section.tsx";
import { Word } from "../parts/Words.tsx";
import { PageDetails } from "./PageDetails.tsx";

const text = agents.docs;

/** A thread of `docs`: its pages, the scores of each by round, and two versions of one side by side. */
export function DocsPane({ thread, state }: { thread: string; state: ThreadState }) {
  const pages = useMemo(() => docsPagesOf(state), [state]);
  const [chosen, setChosen] = useState<string>();
  const files = useResultFiles(thread, state) ?? [];
  const page = pages.find(({ agent }) => agent === chosen) ?? pages[0];
  return (
    <div className="stack">
      <Section title={text.pages}>
        {pages.length === 0 && <p className="muted">{text.noPages}</p>}
        <ul className="row">
          {pages.map((each) => (
            <li key={each.agent}>
              <PageButton page={each} isShown={each === page} onShow={() => setChosen(each.agent)} />
            </li>
          ))}
        </ul>
      </Section>
      {page && <PageDetails key={page.agent} page={page} />}
      <Section title={agents.files}>
        <FileList thread={thread} files={files} />
      </Section>
    </div>
  );
}

function PageButton(props: { page: DocsPage; isShown: boolean; onShow: () => void }) {
  const { page, isShown, onShow } = props;
  const status = page.isDegraded ? text.degraded : page.isFinished ? text.finished : text.running;
  const tone = page.isDegraded ? "warn" : page.isFinished ? "good" : "accent";
  return (
    <Button aria-pressed={isShown} onClick={onShow}>
      <Word text={page.agent} />
      <Badge tone={tone}>{status}</Badge>
    </Button>
  );
}
