import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { ApiProblem } from "../api/client.ts";
import { inboxQuery } from "../api/queries.ts";
import { text } from "../text/index.ts";

/** Says that the server is away, as long as it is. The inbox is asked for all the time, so it knows. */
export function OfflineBanner() {
  const { error, failureReason } = useQuery(inboxQuery({ limit: 100, offset: 0 }));
  const isAway = isUnreachable(failureReason) || isUnreachable(error);
  const client = useQueryClient();
  useEffect(() => {
    // When it is back, everything on screen is asked for again: also what failed, or waits on a connection that is dead.
    if (isAway) return () => void client.invalidateQueries({ refetchType: "active" });
    return undefined;
  }, [isAway, client]);
  return <div role="status">{isAway && <p className="banner">{text.common.offline}</p>}</div>;
}

/** Whether nothing answered, or only a proxy in front of the server. */
function isUnreachable(problem: unknown): boolean {
  return problem instanceof ApiProblem && [0, 502, 503, 504].includes(problem.status);
}
