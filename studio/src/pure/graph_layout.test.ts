import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";

import { type GraphLayout, type LayoutInput, layoutGraph } from "./graph_layout.ts";

/** A tree of subgraphs with edges between any of their nodes. */
const inputs: fc.Arbitrary<LayoutInput> = fc
  .array(fc.record({ parent: fc.nat(), isOpen: fc.boolean(), width: fc.integer({ min: 20, max: 260 }) }), {
    minLength: 1,
    maxLength: 24,
  })
  .chain((drawn) => {
    const nodes: LayoutInput["nodes"] = [];
    for (const [index, { parent, isOpen, width }] of drawn.entries()) {
      const open = nodes.filter((node) => node.isOpen);
      const inside = open[parent % (open.length + 1)];
      // Ids with what dagre uses inside of it.
      const id = index === 3 ? "__proto__" : `${index}\u0001`;
      nodes.push({ id, parent: inside?.id, isOpen, width, height: 40 });
    }
    const end = fc.constantFrom(...nodes.map(({ id }) => id));
    return fc
      .uniqueArray(fc.tuple(end, end), { maxLength: 40, selector: ([a, b]) => JSON.stringify([a, b]) })
      .map((ends) => ({
        nodes,
        edges: ends.map(([source, target], index) => ({ id: `e${index}`, source, target })),
      }));
  });

function placeOf(layout: GraphLayout, id: string | undefined) {
  const found = layout.nodes.find((node) => node.id === id);
  if (!found) throw new Error(`${id} has no place`);
  return found;
}

// Hundreds of random graphs take a while on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

describe("layoutGraph", () => {
  it("places every node once, inside of its subgraph, and without overlaps", () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const layout = layoutGraph(input);
        expect(layout.nodes.map(({ id }) => id)).toEqual(input.nodes.map(({ id }) => id));
        for (const node of input.nodes) {
          const place = placeOf(layout, node.id);
          expect([place.x, place.y, place.width, place.height].every(Number.isFinite)).toBe(true);
          expect(place.width).toBeGreaterThanOrEqual(node.width);
          if (node.parent === undefined) continue;
          const around = placeOf(layout, node.parent);
          expect(place.x).toBeGreaterThanOrEqual(around.x);
          expect(place.y).toBeGreaterThan(around.y);
          expect(place.x + place.width).toBeLessThanOrEqual(around.x + around.width + 1);
          expect(place.y + place.height).toBeLessThanOrEqual(around.y + around.height + 1);
        }
        for (const [index, one] of input.nodes.entries()) {
          for (const other of input.nodes.slice(index + 1)) {
            if (one.parent !== other.parent) continue;
            const [a, b] = [placeOf(layout, one.id), placeOf(layout, other.id)];
            const isApart =
              a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
            expect(isApart, `${one.id} and ${other.id}`).toBe(true);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it("keeps every edge, from its source to its target", () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const layout = layoutGraph(input);
        expect(layout.edges.map(({ id }) => id)).toEqual(input.edges.map(({ id }) => id));
        for (const [index, edge] of input.edges.entries()) {
          const points = layout.edges[index]?.points ?? [];
          expect(points.length).toBeGreaterThanOrEqual(2);
          for (const [id, point] of [
            [edge.source, points[0]],
            [edge.target, points.at(-1)],
          ] as const) {
            const place = placeOf(layout, id);
            const [x, y] = [point?.x ?? Number.NaN, point?.y ?? Number.NaN];
            const isAt =
              x >= place.x - 2 &&
              x <= place.x + place.width + 2 &&
              y >= place.y - 2 &&
              y <= place.y + place.height + 2;
            expect(isAt, `${edge.id} at ${id}`).toBe(true);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it("is the same each time", () => {
    fc.assert(
      fc.property(inputs, (input) => {
        expect(layoutGraph(structuredClone(input))).toEqual(layoutGraph(input));
      }),
      { numRuns: 50 },
    );
  });

  it("lays out 200 nodes with 20 open subgraphs within a second", () => {
    const input = largeGraph();
    layoutGraph(input);
    // Computing time: other programs on the machine do not count.
    const begun = process.cpuUsage();
    const layout = layoutGraph(input);
    expect(process.cpuUsage(begun).user / 1000).toBeLessThan(1000);
    expect(layout.nodes).toHaveLength(220);
  });
});

/** 20 subgraphs in a row, each with a chain of 10 nodes, shortcuts and loops. */
function largeGraph(): LayoutInput {
  const nodes: LayoutInput["nodes"] = [];
  const edges: LayoutInput["edges"] = [];
  const edge = (source: string, target: string) => edges.push({ id: `${source}>${target}`, source, target });
  for (let group = 0; group < 20; group++) {
    nodes.push({ id: `g${group}`, parent: undefined, width: 160, height: 56, isOpen: true });
    for (let step = 0; step < 10; step++) {
      nodes.push({ id: `g${group}:n${step}`, parent: `g${group}`, width: 160, height: 56, isOpen: false });
      if (step > 0) edge(`g${group}:n${step - 1}`, `g${group}:n${step}`);
      if (step > 2) edge(`g${group}:n${step}`, `g${group}:n${(step * 7) % (step - 1)}`);
    }
    if (group > 0) edge(`g${group - 1}:n9`, `g${group}:n0`);
    if (group > 3) edge(`g${group}:n5`, `g${(group * 7) % (group - 1)}:n0`);
  }
  return { nodes, edges };
}
