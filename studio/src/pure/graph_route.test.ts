import { describe, expect, it } from "vitest";

import { arrowHead, routePath } from "./graph_route.ts";

describe("routePath", () => {
  it("begins and ends at the ends of the route", () => {
    const points = [
      { x: 0, y: 0 },
      { x: 10, y: 20 },
      { x: 0, y: 40 },
    ];
    expect(routePath(points)).toBe("M0,0Q10,20 5,30L0,40");
    expect(routePath([])).toBe("");
    expect(arrowHead(points)).toMatch(/^M0,40L/);
    expect(arrowHead([{ x: 1, y: 1 }])).toBe("");
  });
});
