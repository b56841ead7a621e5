/** The declaration of a graph as a tree of nodes and subgraphs, and what of it is visible while some subgraphs are open. */

import type { DeclaredGraph } from "../api/types.ts";
import { numbered, visibleText } from "./visible_text.ts";

export const START = "__start__";
export const END = "__end__";

export type NodeKind = "start" | "end" | "node" | "group";

export interface GraphNode {
  /** The names of the nodes that lead to it, such as `parent:child`. */
  id: string;
  /** Its name inside of its graph. Comes from the server: text and nothing else. */
  name: string;
  kind: NodeKind;
  /** The subgraph that it is in. */
  parent: string | undefined;
  children: string[];
}

export interface GraphEdge {
  id: string;
  source: string;
  target: string;
  /** Whether a run decides to take it. */
  isConditional: boolean;
}

export interface GraphModel {
  nodes: ReadonlyMap<string, GraphNode>;
  /** Nodes of the graph itself. */
  roots: readonly string[];
  /** Edges between nodes. Ends that are subgraphs stand for the subgraph as a whole. */
  edges: readonly GraphEdge[];
}

/** Deeper names are not split: no real graph is that deep, and recursion must end. */
const DEPTH_MAX = 16;

/** Returns an id that no pair of other names gets: names may contain any character. */
export function edgeId(source: string, target: string): string {
  return JSON.stringify([source, target]);
}

function partsOf(id: string): string[] {
  const parts = id.split(":");
  if (parts.some((part) => part === "")) return [id];
  if (parts.length <= DEPTH_MAX) return parts;
  return [...parts.slice(0, DEPTH_MAX - 1), parts.slice(DEPTH_MAX - 1).join(":")];
}

function kindOf(name: string): NodeKind {
  if (name === START) return "start";
  return name === END ? "end" : "node";
}

/** Returns the model of a declared graph. */
export function graphModel(declared: DeclaredGraph): GraphModel {
  const nodes = new Map<string, GraphNode>();
  const roots: string[] = [];
  const add = (id: string) => {
    let parent: string | undefined;
    for (const name of partsOf(id)) {
      const own = parent === undefined ? name : `${parent}:${name}`;
      let node = nodes.get(own);
      if (!node) {
        node = { id: own, name, kind: kindOf(name), parent, children: [] };
        nodes.set(own, node);
        const above = parent === undefined ? undefined : nodes.get(parent);
        if (above) {
          above.kind = "group";
          above.children.push(own);
        } else roots.push(own);
      }
      parent = own;
    }
  };
  for (const { id } of declared.nodes) add(id);
  const edges = new Map<string, GraphEdge>();
  for (const { source, target, conditional } of declared.edges) {
    const ends = [endOf(nodes, source), endOf(nodes, target)] as const;
    for (const end of ends) if (!nodes.has(end)) add(end);
    const id = edgeId(...ends);
    const before = edges.get(id);
    const isConditional = (conditional ?? false) && (before?.isConditional ?? true);
    edges.set(id, { id, source: ends[0], target: ends[1], isConditional });
  }
  const model = { nodes, roots, edges: [...edges.values()] };
  sortByReach(model);
  return model;
}

/** Sorts the nodes of each graph in the order in which a run can reach them, with the end last. */
function sortByReach(model: { nodes: Map<string, GraphNode>; roots: string[]; edges: GraphEdge[] }): void {
  const from = new Map<string, string[]>();
  for (const { source, target } of model.edges) from.set(source, [...(from.get(source) ?? []), target]);
  const order = new Map<string, number>();
  const found = [...model.nodes.values()].filter(({ kind }) => kind === "start").map(({ id }) => id);
  for (const id of found) {
    // A subgraph is reached when the first of its nodes is.
    for (let at: string | undefined = id; at !== undefined; at = model.nodes.get(at)?.parent)
      if (!order.has(at)) order.set(at, order.size);
    for (const target of from.get(id) ?? []) if (!order.has(target)) found.push(target);
  }
  const rank = (id: string) => {
    if (model.nodes.get(id)?.kind === "end") return Number.POSITIVE_INFINITY;
    return order.get(id) ?? Number.MAX_SAFE_INTEGER;
  };
  const byRank = (a: string, b: string) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b));
  model.roots.sort(byRank);
  for (const node of model.nodes.values()) node.children.sort(byRank);
}

/** A subgraph that may do nothing has edges to its own start and end, which are not declared: they mean the subgraph. */
function endOf(nodes: ReadonlyMap<string, GraphNode>, id: string): string {
  if (nodes.has(id)) return id;
  const group = /^(.+):(?:__start__|__end__)$/s.exec(id)?.[1];
  return group !== undefined && nodes.has(group) ? group : id;
}

export function groupsOf(model: GraphModel): string[] {
  return [...model.nodes.values()].filter(({ kind }) => kind === "group").map(({ id }) => id);
}

export interface VisibleNode {
  node: GraphNode;
  /** Whether it is a subgraph whose nodes are visible. */
  isOpen: boolean;
  depth: number;
}

export interface VisibleEdge extends GraphEdge {
  /** The declared edges that it stands for. */
  declared: string[];
}

export interface VisibleGraph {
  /** Subgraphs come before their nodes. */
  nodes: VisibleNode[];
  edges: VisibleEdge[];
}

/** Returns what is visible while these subgraphs are open. Edges of hidden nodes belong to the closed subgraph around them. */
export function visibleGraph(model: GraphModel, open: ReadonlySet<string>): VisibleGraph {
  const nodes: VisibleNode[] = [];
  /** The visible node that stands for each node. */
  const shownAs = new Map<string, string>();
  const visit = (id: string, depth: number, hiddenIn: string | undefined) => {
    const node = model.nodes.get(id);
    if (!node) return;
    const isOpen = hiddenIn === undefined && node.kind === "group" && open.has(id);
    if (hiddenIn === undefined) nodes.push({ node, isOpen, depth });
    shownAs.set(id, hiddenIn ?? id);
    const inside = hiddenIn ?? (isOpen ? undefined : id);
    for (const child of node.children) visit(child, depth + 1, inside);
  };
  for (const id of model.roots) visit(id, 0, undefined);

  const edges = new Map<string, VisibleEdge>();
  for (const edge of model.edges) {
    const source = shownAs.get(edge.source) ?? edge.source;
    const target = shownAs.get(edge.target) ?? edge.target;
    const isInside = source === target && (source !== edge.source || target !== edge.target);
    if (isInside) continue;
    const id = edgeId(source, target);
    const before = edges.get(id);
    if (before) {
      before.declared.push(edge.id);
      before.isConditional &&= edge.isConditional;
    } else edges.set(id, { id, source, target, isConditional: edge.isConditional, declared: [edge.id] });
  }
  return { nodes, edges: [...edges.values()] };
}

/** Returns a name with the characters that nobody sees made visible: they could make it look like another one. */
export function visibleName(name: string): string {
  const shown = visibleText(name).replace(/[\n\r\t\u200c\u200d]/g, numbered);
  return shown.trim() === "" ? `“${shown}”` : shown;
}
