import { useQuery } from "@tanstack/react-query";

import type { Json } from "../../api/json.ts";
import { Link } from "../../app/Link.tsx";
import { hrefOf } from "../../app/location.ts";
import { formatCost } from "../../pure/format.ts";
import { assistants as text } from "../../text/start.ts";
import { Badge, type Tone } from "../../ui/Badge.tsx";
import { ChangeList } from "../../ui/ChangeList.tsx";
import { JsonTree } from "../../ui/JsonTree.tsx";
import { Failure } from "../../ui/Notice.tsx";
import { type ComparedRuns, hasEnded, resultDiffQuery, resultQuery } from "./compare_versions.ts";

interface VersionResultsProps {
  runs: ComparedRuns;
  /** The two versions. */
  versions: number[];
  place: number;
}

/** What both versions made of one input, and where it differs first. */
export function VersionResults({ runs, versions, place }: VersionResultsProps) {
  const left = useQuery(resultQuery(runs.left));
  const right = useQuery(resultQuery(runs.right));
  const areDone = hasEnded(left.data) && hasEnded(right.data);
  const diff = useQuery({ ...resultDiffQuery(runs), enabled: areDone });
  const [first] = diff.data ?? [];
  const [one = 0, other = 0] = versions;
  return (
    <section className="card stack">
      <h2>{text.input(place)}</h2>
      <div className="version-pair">
        <Side of={runs.left} version={one} place={place} />
        <Side of={runs.right} version={other} place={place} />
      </div>
      <div role="status">
        {diff.data && !first && <p>{text.same}</p>}
        {first && (
          <>
            <h3>{text.difference}</h3>
            <ChangeList changes={[first]} />
            <p>
              <Link href={hrefOf(["threads", runs.right.thread], { compare: `${runs.left.thread}:` })}>
                {text.allDifferences(diff.data?.length ?? 0)}
              </Link>
            </p>
          </>
        )}
      </div>
      {diff.error && <Failure error={diff.error} onRetry={() => void diff.refetch()} />}
    </section>
  );
}

const TONES: Record<string, Tone> = { success: "good", error: "bad", timeout: "bad", interrupted: "warn" };

interface SideProps {
  of: ComparedRuns["left"];
  version: number;
  place: number;
}

function Side({ of, version, place }: SideProps) {
  const { data, error, refetch } = useQuery(resultQuery(of));
  const waits = (data?.state?.interrupts.length ?? 0) > 0;
  const status = waits ? "interrupted" : (data?.status ?? "starting");
  return (
    <div className="stack">
      <div className="row">
        <h3>{text.version(version)}</h3>
        <span role="status">
          <Badge tone={TONES[status] ?? "plain"}>{text.status[status]}</Badge>
        </span>
        {data?.cost && (
          <span className="muted small">
            {text.cost}: {formatCost(data.cost)}
          </span>
        )}
        <span className="spacer" />
        <Link href={hrefOf(["threads", of.thread])} aria-label={text.openThreadOf(version, place)}>
          {text.openThread}
        </Link>
      </div>
      {error && <Failure error={error} onRetry={() => void refetch()} />}
      {data?.state && (
        <div className="version-value">
          <JsonTree name={`${text.version(version)}: ${text.result}`} value={data.state.values as Json} />
        </div>
      )}
    </div>
  );
}
