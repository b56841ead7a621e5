/** Lays graphs out, off the main thread. */

import { type LayoutInput, layoutGraph } from "../../../pure/graph_layout.ts";

addEventListener("message", ({ data }: MessageEvent<{ id: number; input: LayoutInput }>) => {
  postMessage({ id: data.id, layout: layoutGraph(data.input) });
});
