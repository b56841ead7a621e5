import { useIsFetching, useQuery } from "@tanstack/react-query";

import { ApiProblem } from "../api/client.ts";
import { inboxQuery } from "../api/queries.ts";
import { text } from "../text/index.ts";

/** Says that the server is away, as long as it is. The inbox is asked for all the time, so it knows. */
export function OfflineBanner() {
  useIsFetching();
  const { error, failureReason } = useQuery(inboxQuery({ limit: 100, offset: 0 }));
  const problem = error ?? failureReason;
  const isAway = problem instanceof ApiProblem && problem.status === 0;
  return <div role="status">{isAway && <p className="banner">{text.common.offline}</p>}</div>;
}
