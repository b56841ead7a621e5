/** Routes of edges as paths of an SVG. Apart from the layout, which the page leaves to a worker. */

export interface Point {
  x: number;
  y: number;
}

/** Returns the route as the path of an SVG: a curve that touches the middle between each two points. */
export function routePath(points: readonly Point[]): string {
  const [first, ...rest] = points;
  const last = rest.pop();
  if (!first || !last) return "";
  let path = `M${first.x},${first.y}`;
  rest.forEach((point, index) => {
    const next = rest[index + 1] ?? last;
    path += `Q${point.x},${point.y} ${(point.x + next.x) / 2},${(point.y + next.y) / 2}`;
  });
  return `${path}L${last.x},${last.y}`;
}

/** Returns the head of an arrow at the end of a route. */
export function arrowHead(points: readonly Point[]): string {
  const tip = points.at(-1);
  const before = points.findLast((point) => tip && Math.hypot(point.x - tip.x, point.y - tip.y) > 2);
  if (!tip || !before) return "";
  const length = Math.hypot(tip.x - before.x, tip.y - before.y);
  const [x, y] = [((tip.x - before.x) / length) * 7, ((tip.y - before.y) / length) * 7];
  const round = (value: number) => Math.round(value * 10) / 10;
  const left = `${round(tip.x - x - y * 0.6)},${round(tip.y - y + x * 0.6)}`;
  const right = `${round(tip.x - x + y * 0.6)},${round(tip.y - y - x * 0.6)}`;
  return `M${tip.x},${tip.y}L${left}L${right}Z`;
}
