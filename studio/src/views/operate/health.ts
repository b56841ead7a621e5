/** Signs of health, and what to do about those that are not good. */

import { ApiProblem } from "../../api/client.ts";
import { formatCount, formatDuration } from "../../pure/format.ts";
import { operate } from "../../text/operate.ts";

const text = operate.health;

export type SignState = "good" | "warn" | "bad";

export interface HealthSign {
  name: keyof typeof text.signs;
  state: SignState;
  says: string;
  /** What to do. */
  next?: string;
  /** The section that shows more. */
  section?: "queue" | "deliveries";
}

/** What was asked, and what came of it. */
export interface HealthFacts {
  isReady: boolean | undefined;
  readyError: Error | null;
  /** How long the stores took to answer, in milliseconds. */
  storesMs: number | undefined;
  storesError: Error | null;
  metrics: Readonly<Record<string, number>> | undefined;
}

/** What is overdue by more than this is worth a look. */
const OVERDUE_SECONDS = 60;

/** Returns the signs that are known, in a fixed order. */
export function healthSigns(facts: HealthFacts): HealthSign[] {
  const signs = [serverSign(facts), storesSign(facts), engineSign(facts), ...metricSigns(facts.metrics)];
  return signs.filter((sign) => sign !== undefined);
}

export function isAway(error: Error | null): boolean {
  return error instanceof ApiProblem && error.status === 0;
}

// The server says why it is not ready in a sentence; the reasons are those of `routes/ready.rs`.
function reason(error: Error | null): "draining" | "stores" | "stalled" | "other" | undefined {
  if (!error) return undefined;
  if (/shutting down/i.test(error.message)) return "draining";
  if (/none begins or ends/i.test(error.message)) return "stalled";
  return /store|database/i.test(error.message) ? "stores" : "other";
}

function serverSign(facts: HealthFacts): HealthSign | undefined {
  const { readyError, isReady } = facts;
  if (isAway(readyError)) return { name: "server", state: "bad", says: text.away, next: text.awayNext };
  if (reason(readyError) === "draining")
    return { name: "server", state: "warn", says: text.draining, next: text.drainingNext };
  if (reason(readyError) === "other")
    return {
      name: "server",
      state: "bad",
      says: readyError?.message ?? text.notReady,
      next: text.unexpected,
    };
  if (readyError) return { name: "server", state: "warn", says: text.notReady };
  return isReady === undefined ? undefined : { name: "server", state: "good", says: text.serverGood };
}

function storesSign(facts: HealthFacts): HealthSign | undefined {
  const isBad = (facts.storesError && !isAway(facts.storesError)) || reason(facts.readyError) === "stores";
  if (isBad) return { name: "stores", state: "bad", says: text.storesBad, next: text.storesNext };
  if (facts.storesMs === undefined || facts.storesError) return undefined;
  return { name: "stores", state: "good", says: text.storesGood(facts.storesMs) };
}

function engineSign(facts: HealthFacts): HealthSign | undefined {
  if (reason(facts.readyError) === "stalled")
    return { name: "engine", state: "bad", says: text.engineBad, next: text.engineNext, section: "queue" };
  if (facts.isReady === undefined || facts.readyError) return undefined;
  const executing = facts.metrics?.runs_executing;
  const says = executing === undefined ? text.engineIdle : text.engineGood(executing);
  return { name: "engine", state: "good", says };
}

function metricSigns(metrics: HealthFacts["metrics"]): HealthSign[] {
  if (!metrics) return [];
  const run = metrics.run_oldest_waiting_seconds ?? 0;
  const delivery = metrics.delivery_oldest_waiting_seconds ?? 0;
  const failed = metrics.request_failures ?? 0;
  const limited = metrics.requests_limited ?? 0;
  const late = (seconds: number) => formatDuration(seconds * 1000);
  return [
    run > OVERDUE_SECONDS
      ? { name: "runs", state: "warn", says: text.runsWarn(late(run)), next: text.runsNext, section: "queue" }
      : { name: "runs", state: "good", says: text.runsGood },
    delivery > OVERDUE_SECONDS
      ? {
          name: "deliveries",
          state: "warn",
          says: text.deliveriesWarn(late(delivery)),
          next: text.deliveriesNext,
          section: "deliveries",
        }
      : { name: "deliveries", state: "good", says: text.deliveriesGood },
    failed > 0
      ? {
          name: "failures",
          state: "warn",
          says: text.failuresWarn(formatCount(failed), formatCount(metrics.requests ?? failed)),
          next: text.failuresNext,
        }
      : { name: "failures", state: "good", says: text.failuresGood },
    limited > 0
      ? { name: "limits", state: "warn", says: text.limitsWarn(formatCount(limited)), next: text.limitsNext }
      : { name: "limits", state: "good", says: text.limitsGood },
  ];
}

/** A figure with its unit, which is in its name. */
export function formatFigure(name: string, value: number): string {
  return name.endsWith("_seconds") ? formatDuration(value * 1000) : formatCount(value);
}
