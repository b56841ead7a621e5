import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { edgeId, graphModel, groupsOf, visibleGraph, visibleName } from "./graph_model.ts";

const MAIL = {
  nodes: ["__start__", "triage", "__end__", "agent:call", "agent:tools:run"].map((id) => ({ id })),
  edges: [
    { source: "__start__", target: "triage" },
    { source: "triage", target: "agent:call", conditional: true },
    { source: "triage", target: "__end__", conditional: true },
    { source: "agent:call", target: "agent:tools:run", conditional: true },
    { source: "agent:tools:run", target: "agent:call" },
    { source: "agent:call", target: "__end__", conditional: true },
  ],
};

describe("graphModel", () => {
  it("builds subgraphs from the ids", () => {
    const model = graphModel(MAIL);
    expect(model.roots).toEqual(["__start__", "triage", "agent", "__end__"]);
    expect(groupsOf(model)).toEqual(["agent", "agent:tools"]);
    expect(model.nodes.get("agent:tools:run")).toMatchObject({
      name: "run",
      parent: "agent:tools",
      kind: "node",
    });
    expect(model.nodes.get("__end__")?.kind).toBe("end");
  });

  it("reads edges to the start or the end of a subgraph as edges of the subgraph", () => {
    const model = graphModel({
      nodes: [{ id: "a" }, { id: "b:x" }, { id: "c" }],
      edges: [
        { source: "a", target: "b:__end__", conditional: true },
        { source: "b:__start__", target: "c", conditional: true },
      ],
    });
    expect(model.edges.map(({ source, target }) => [source, target])).toEqual([
      ["a", "b"],
      ["b", "c"],
    ]);
  });

  it("keeps names that are no path, and ends after many levels", () => {
    const deep = Array.from({ length: 500 }, () => "a").join(":");
    const model = graphModel({ nodes: [{ id: ":" }, { id: "a::b" }, { id: deep }], edges: [] });
    expect(model.nodes.get(":")?.name).toBe(":");
    expect(model.nodes.get("a::b")?.name).toBe("a::b");
    expect(model.nodes.size).toBe(18);
  });
});

describe("visibleGraph", () => {
  it("shows a closed subgraph as one node with the edges of its nodes", () => {
    const { nodes, edges } = visibleGraph(graphModel(MAIL), new Set());
    expect(nodes.map(({ node }) => node.id)).toEqual(["__start__", "triage", "agent", "__end__"]);
    expect(edges.map(({ id }) => id)).toEqual([
      edgeId("__start__", "triage"),
      edgeId("triage", "agent"),
      edgeId("triage", "__end__"),
      edgeId("agent", "__end__"),
    ]);
    expect(edges[1]?.declared).toEqual([edgeId("triage", "agent:call")]);
  });

  it("opens one level at a time", () => {
    const { nodes } = visibleGraph(graphModel(MAIL), new Set(["agent", "elsewhere"]));
    const shown = nodes.map(({ node, isOpen, depth }) => [node.id, isOpen, depth]);
    expect(shown.slice(2, 5)).toEqual([
      ["agent", true, 0],
      ["agent:call", false, 1],
      ["agent:tools", false, 1],
    ]);
  });

  it("has every declared edge in exactly one visible one, or inside of a closed subgraph", () => {
    const name = fc.constantFrom("a", "b", "c", "__proto__", "constructor", "\u0001");
    const id = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(":"));
    const graph = fc.uniqueArray(id, { minLength: 1, maxLength: 12 }).chain((ids) =>
      fc.record({
        nodes: fc.constant(ids.map((each) => ({ id: each }))),
        edges: fc.array(fc.record({ source: fc.constantFrom(...ids), target: fc.constantFrom(...ids) })),
        open: fc.subarray(ids.flatMap((each) => [each, each.split(":")[0] ?? each])),
      }),
    );
    fc.assert(
      fc.property(graph, ({ nodes, edges, open }) => {
        const model = graphModel({ nodes, edges });
        const seen = visibleGraph(model, new Set(open));
        const visible = new Set(seen.nodes.map(({ node }) => node.id));
        expect(visible.size).toBe(seen.nodes.length);
        const declared = seen.edges.flatMap((edge) => edge.declared);
        expect(new Set(declared).size).toBe(declared.length);
        for (const edge of seen.edges) {
          expect(visible.has(edge.source)).toBe(true);
          expect(visible.has(edge.target)).toBe(true);
        }
        for (const edge of model.edges) {
          if (declared.includes(edge.id)) continue;
          const closed = [...visible].filter(
            (each) => !seen.nodes.some(({ node, isOpen }) => node.id === each && isOpen),
          );
          const isIn = (group: string) =>
            [edge.source, edge.target].every((end) => end === group || end.startsWith(`${group}:`));
          expect(closed.some(isIn)).toBe(true);
        }
      }),
    );
  });
});

describe("visibleName", () => {
  it("shows characters that nobody sees", () => {
    expect(visibleName("pay\u202egnihton")).toBe("pay⟨U+202E⟩gnihton");
    expect(visibleName("a\u200bb\n")).toBe("a⟨U+200B⟩b⟨U+000A⟩");
    expect(visibleName("  ")).toBe("“  ”");
    expect(visibleName("كتابة")).toBe("كتابة");
  });
});
