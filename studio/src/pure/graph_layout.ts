/**
 * Places the nodes of a graph and the routes of its edges.
 *
 * Each open subgraph is laid out by itself, innermost first, and is one large node of the graph around it. Edges that cross the
 * border of a subgraph pass through its entry at the top or its exit at the bottom, so they go around the nodes inside. The result
 * depends on the declaration and on what is open, never on what runs: nothing jumps while a run goes on.
 */

import { layout as dagreLayout, Graph } from "@dagrejs/dagre";

import type { Point } from "./graph_route.ts";

export interface LayoutNode {
  id: string;
  parent: string | undefined;
  width: number;
  height: number;
  /** Subgraphs that are open get the size of what is inside; their own size is the least. */
  isOpen: boolean;
}

export interface LayoutEdge {
  id: string;
  source: string;
  target: string;
}

export interface LayoutInput {
  nodes: LayoutNode[];
  edges: LayoutEdge[];
}

export interface PlacedNode extends Point {
  id: string;
  width: number;
  height: number;
}

export interface GraphLayout {
  /** Absolute positions of the top left corners, in the order of the input. */
  nodes: PlacedNode[];
  edges: { id: string; points: Point[] }[];
}

/** Space around the nodes of an open subgraph. */
const PADDING = 16;
/** Height of the name of an open subgraph. */
export const GROUP_HEADER = 36;

/** The graph itself, as the container of its nodes. No node has this id: it is not text. */
type ContainerId = string | undefined;

/** A part of an edge inside of one container; `undefined` is the entry or the exit of the container. */
interface Leg {
  container: ContainerId;
  from: string | undefined;
  to: string | undefined;
}

interface Container {
  children: LayoutNode[];
  legs: Map<string, Leg>;
}

interface Placed {
  width: number;
  height: number;
  /** Top left corners, relative to the container. */
  children: Map<string, PlacedNode>;
  routes: Map<string, Point[]>;
}

export function layoutGraph(input: LayoutInput): GraphLayout {
  const byId = new Map(input.nodes.map((node) => [node.id, node]));
  const containers = new Map<ContainerId, Container>([[undefined, { children: [], legs: new Map() }]]);
  for (const { id, isOpen } of input.nodes) if (isOpen) containers.set(id, { children: [], legs: new Map() });
  for (const node of input.nodes) containers.get(node.parent)?.children.push(node);

  const legs = new Map<string, Leg[]>();
  for (const edge of input.edges) {
    const all = legsOf(edge, byId);
    legs.set(edge.id, all);
    for (const leg of all) containers.get(leg.container)?.legs.set(legKey(leg), leg);
  }

  const placed = new Map<ContainerId, Placed>();
  // The input has subgraphs before their nodes, so the reverse is innermost first.
  for (const id of [...containers.keys()].slice(1).reverse()) {
    const container = containers.get(id);
    const least = id === undefined ? undefined : byId.get(id);
    if (container) placed.set(id, place(container, placed, least));
  }
  const root = containers.get(undefined);
  if (root) placed.set(undefined, place(root, placed, undefined));
  return absolute(input, legs, placed);
}

function pathTo(id: string, byId: ReadonlyMap<string, LayoutNode>): ContainerId[] {
  const path: ContainerId[] = [];
  for (let at: string | undefined = id; at !== undefined; at = byId.get(at)?.parent) path.unshift(at);
  path.unshift(undefined);
  return path;
}

/** Cuts an edge where it crosses the borders of subgraphs. */
function legsOf(edge: LayoutEdge, byId: ReadonlyMap<string, LayoutNode>): Leg[] {
  if (!byId.has(edge.source) || !byId.has(edge.target)) return [];
  const from = pathTo(edge.source, byId);
  const to = pathTo(edge.target, byId);
  let common = 0;
  while (common < from.length && common < to.length && from[common] === to[common]) common++;
  // From here on the paths differ: `common - 1` is the container that both are in. A node and itself differ at the end.
  if (edge.source === edge.target) common--;
  const legs: Leg[] = [];
  for (let at = from.length - 1; at > common; at--)
    legs.push({ container: from[at - 1], from: from[at], to: undefined });
  legs.push({ container: from[common - 1], from: from[common], to: to[common] });
  for (let at = common + 1; at < to.length; at++)
    legs.push({ container: to[at - 1], from: undefined, to: to[at] });
  return legs;
}

function legKey({ from, to }: Leg): string {
  return JSON.stringify([from ?? null, to ?? null]);
}

/** Names of dagre's nodes: numbers in place of ids, which may contain what dagre separates names with. */
const ENTRY = "entry";
const EXIT = "exit";

function place(
  container: Container,
  placed: ReadonlyMap<ContainerId, Placed>,
  least: LayoutNode | undefined,
): Placed {
  const graph = new Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 32, ranksep: 40, edgesep: 14 });
  const names = new Map(container.children.map(({ id }, index) => [id, `n${index}`]));
  const nameOf = (id: string | undefined, port: string) =>
    id === undefined ? port : (names.get(id) ?? port);
  const legs = [...container.legs].map(([key, leg]) => {
    return { key, leg, source: nameOf(leg.from, ENTRY), target: nameOf(leg.to, EXIT) };
  });
  // The entry comes first: what is behind it is then drawn from the top.
  if (legs.some(({ source }) => source === ENTRY)) graph.setNode(ENTRY, { width: 1, height: 1 });
  for (const child of container.children) {
    const { width, height } = placed.get(child.id) ?? child;
    graph.setNode(nameOf(child.id, ENTRY), { width, height });
  }
  if (legs.some(({ target }) => target === EXIT)) graph.setNode(EXIT, { width: 1, height: 1 });
  for (const { source, target } of legs)
    graph.setEdge(source, target, { weight: source === ENTRY || target === EXIT ? 2 : 1 });
  dagreLayout(graph);

  const boxes = container.children.map(({ id }) => boxOf(id, graph.node(nameOf(id, ENTRY))));
  const routes = legs.map(({ key, leg, source, target }) => {
    const points = pointsOf(graph.edge(source, target));
    return { key, leg, points: source === target ? loopOf(boxOf("", graph.node(source)), points) : points };
  });
  return framed(boxes, routes, least);
}

function boxOf(id: string, label: { x?: number; y?: number; width?: number; height?: number }): PlacedNode {
  const { x = 0, y = 0, width = 0, height = 0 } = label;
  return { id, x: x - width / 2, y: y - height / 2, width, height };
}

function pointsOf(label: { points?: Point[] }): Point[] {
  return (label.points ?? []).map(({ x, y }) => ({ x, y }));
}

/** Dagre leaves space for an edge from a node to itself, but draws it apart from the node. */
function loopOf(box: PlacedNode, points: readonly Point[]): Point[] {
  const side = box.x + box.width;
  const out = Math.max(side + 8, range(points.map(({ x }) => x)).max);
  const y = (part: number) => box.y + box.height * part;
  return [
    { x: side, y: y(0.25) },
    { x: out, y: y(0.1) },
    { x: out, y: y(0.9) },
    { x: side, y: y(0.75) },
  ];
}

interface Route {
  key: string;
  leg: Leg;
  points: Point[];
}

/** Moves what dagre placed into a frame with space for a name. */
function framed(boxes: PlacedNode[], routes: Route[], least: LayoutNode | undefined): Placed {
  // Routes go around nodes, so they may be further out than any node.
  const all = [...boxes.flatMap(cornersOf), ...routes.flatMap(({ points }) => points)];
  const x = range(all.map((point) => point.x));
  const y = range(all.map((point) => point.y));
  const inset = least ? PADDING : 0;
  // Entries and exits keep a distance already.
  const top = least ? GROUP_HEADER + (routes.some(({ leg }) => leg.from === undefined) ? 0 : PADDING) : 0;
  const bottom = routes.some(({ leg }) => leg.to === undefined) ? 0 : inset;
  const width = Math.max(x.max - x.min + 2 * inset, least?.width ?? 0);
  const height = y.max - y.min + top + bottom;
  const dx = (width - (x.max - x.min)) / 2 - x.min;
  const dy = top - y.min;
  const moved = <P extends Point>(point: P): P => ({ ...point, x: point.x + dx, y: point.y + dy });

  const toBorder = ({ leg, points }: Route): Point[] => {
    const route = points.map(moved);
    const [first, last] = [route[0], route.at(-1)];
    if (leg.from === undefined && first) route.unshift({ x: first.x, y: 0 });
    if (leg.to === undefined && last) route.push({ x: last.x, y: height });
    return route;
  };
  return {
    width,
    height,
    children: new Map(boxes.map((box) => [box.id, moved(box)])),
    routes: new Map(routes.map((route) => [route.key, toBorder(route)])),
  };
}

function cornersOf(box: PlacedNode): Point[] {
  return [box, { x: box.x + box.width, y: box.y + box.height }];
}

function range(values: number[]): { min: number; max: number } {
  let [min, max] = [values[0] ?? 0, values[0] ?? 0];
  for (const value of values) {
    min = Math.min(min, value);
    max = Math.max(max, value);
  }
  return { min, max };
}

function absolute(
  input: LayoutInput,
  legs: ReadonlyMap<string, Leg[]>,
  placed: ReadonlyMap<ContainerId, Placed>,
): GraphLayout {
  const corners = new Map<ContainerId, Point>([[undefined, { x: 0, y: 0 }]]);
  const nodes: PlacedNode[] = [];
  for (const { id, parent } of input.nodes) {
    const box = placed.get(parent)?.children.get(id);
    const corner = corners.get(parent);
    if (!box || !corner) continue;
    const node = { ...box, x: Math.round(corner.x + box.x), y: Math.round(corner.y + box.y) };
    nodes.push(node);
    corners.set(id, node);
  }
  const boxes = new Map(nodes.map((node) => [node.id, node]));
  const edges = input.edges.map(({ id }) => {
    const routes = (legs.get(id) ?? []).map((leg) => {
      const corner = corners.get(leg.container) ?? { x: 0, y: 0 };
      const route = placed.get(leg.container)?.routes.get(legKey(leg)) ?? [];
      return { leg, points: route.map((point) => rounded(corner, point)) };
    });
    return { id, points: joined(routes, boxes) };
  });
  return { nodes, edges };
}

function rounded(corner: Point, { x, y }: Point): Point {
  return { x: Math.round(corner.x + x), y: Math.round(corner.y + y) };
}

/** Joins the legs of an edge. Where two meet at a border, the leg inside of the subgraph says at which point. */
function joined(legs: { leg: Leg; points: Point[] }[], boxes: ReadonlyMap<string, PlacedNode>): Point[] {
  return legs.flatMap(({ leg, points }, index) => {
    const [first, last] = [points[0], points.at(-1)];
    const leaves = index > 0 && leg.from !== undefined ? boxes.get(leg.from) : undefined;
    const enters = index < legs.length - 1 && leg.to !== undefined ? boxes.get(leg.to) : undefined;
    return [
      ...(leaves && first ? aroundFrom(first, leaves) : []),
      ...points.slice(leaves ? 1 : 0, enters ? -1 : undefined),
      ...(enters && last ? aroundTo(last, enters) : []),
    ];
  });
}

/** Space between a subgraph and an edge that goes around it. */
const AROUND = 14;

/** An edge that arrives at a subgraph from below or from the side goes around it to the entry at its top. */
function aroundTo(arrival: Point, box: PlacedNode): Point[] {
  if (arrival.y <= box.y + 2) return [];
  const isLeft = arrival.x < box.x + box.width / 2;
  const x = isLeft ? box.x - AROUND : box.x + box.width + AROUND;
  const y = Math.min(arrival.y, box.y + box.height) + (arrival.y >= box.y + box.height - 2 ? AROUND : 0);
  return [
    { x, y },
    { x, y: box.y - AROUND },
  ];
}

/** An edge that leaves a subgraph to the top or the side goes around it from the exit at its bottom: the same upside down. */
function aroundFrom(departure: Point, box: PlacedNode): Point[] {
  const flipped = ({ x, y }: Point): Point => ({ x, y: 2 * box.y + box.height - y });
  return aroundTo(flipped(departure), box).map(flipped).toReversed();
}
