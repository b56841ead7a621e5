/** Namespaces of the store as a tree. */

export interface NamespaceNode {
  /** The last part of its path. */
  name: string;
  path: string[];
  children: NamespaceNode[];
}

/** Returns the tree of these paths, with the namespaces above them, in alphabetical order. */
export function namespaceTree(paths: readonly (readonly string[])[]): NamespaceNode[] {
  const root: NamespaceNode = { name: "", path: [], children: [] };
  // One map for all levels: looking for a child among thousands of siblings would be slow.
  const nodes = new Map<string, NamespaceNode>([["[]", root]]);
  for (const path of paths) {
    let parent = root;
    for (const [index, name] of path.entries()) {
      const here = path.slice(0, index + 1);
      const id = JSON.stringify(here);
      let node = nodes.get(id);
      if (!node) {
        node = { name, path: here, children: [] };
        nodes.set(id, node);
        parent.children.push(node);
      }
      parent = node;
    }
  }
  for (const node of nodes.values()) node.children.sort((a, b) => a.name.localeCompare(b.name));
  return root.children;
}

/** Returns the parts of a namespace, which never contain dots. */
export function partsOf(namespace: string | null): string[] {
  return (namespace ?? "").split(".").filter(Boolean);
}

/** Whether a path is `below`, or below it. */
export function isWithin(path: readonly string[], above: readonly string[]): boolean {
  return above.every((name, index) => path[index] === name);
}

/** Returns the condition for a field that the visitor typed: a number, `true`, `false` or `null` is compared as such. */
export function fieldFilter(
  field: string,
  value: string,
): { [field: string]: string | number | boolean | null } | undefined {
  if (field === "" || value === "") return undefined;
  return { [field]: scalar(value) };
}

function scalar(text: string): string | number | boolean | null {
  if (text === "true" || text === "false") return text === "true";
  if (text === "null") return null;
  // What is in quotes is text, also if it looks like a number.
  const quoted = /^"(.*)"$/.exec(text)?.[1];
  if (quoted !== undefined) return quoted;
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}
