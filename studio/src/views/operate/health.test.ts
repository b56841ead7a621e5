import { describe, expect, test } from "vitest";

import { ApiProblem } from "../../api/client.ts";
import { formatFigure, type HealthFacts, healthSigns } from "./health.ts";

const WELL: HealthFacts = {
  isReady: true,
  readyError: null,
  storesMs: 3,
  storesError: null,
  metrics: { runs_executing: 2, requests: 10, request_failures: 0, requests_limited: 0 },
};

const statesOf = (facts: HealthFacts) =>
  Object.fromEntries(healthSigns(facts).map(({ name, state }) => [name, state]));

const unready = (detail: string): HealthFacts => ({
  ...WELL,
  isReady: undefined,
  readyError: new ApiProblem(503, detail),
});

describe("health", () => {
  test("a healthy server has good signs only", () => {
    expect(new Set(Object.values(statesOf(WELL)))).toEqual(new Set(["good"]));
  });

  test("every reason of the server is a sign of its own", () => {
    expect(statesOf(unready("The server is shutting down")).server).toBe("warn");
    expect(statesOf(unready("The store does not answer")).stores).toBe("bad");
    expect(statesOf(unready("Runs wait, and none begins or ends")).engine).toBe("bad");
    expect(statesOf(unready("Something new")).server).toBe("bad");
  });

  test("a server that is away says nothing about its stores", () => {
    const error = new ApiProblem(0, "The server cannot be reached.");
    const facts = { ...WELL, readyError: error, storesError: error, metrics: undefined };
    expect(statesOf(facts)).toEqual({ server: "bad" });
  });

  test("whatever is not good says what to do", () => {
    const metrics = {
      run_oldest_waiting_seconds: 90,
      delivery_oldest_waiting_seconds: 90,
      request_failures: 1,
      requests_limited: 1,
    };
    const signs = healthSigns({ ...WELL, metrics }).filter(({ state }) => state !== "good");
    expect(signs).toHaveLength(4);
    expect(signs.every(({ next }) => next !== undefined)).toBe(true);
  });

  test("figures have their units", () => {
    expect(formatFigure("uptime_seconds", 61)).toBe("1 min 1 s");
    expect(formatFigure("requests", 1000)).toBe("1,000");
  });
});
