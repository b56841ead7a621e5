import { useMemo, useState } from "react";
import { Link } from "../../app/Link.tsx";
import { hrefOf, usePageLocation } from "../../app/location.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { operate } from "../../text/operate.ts";
import { Button } from "../../ui/Button.tsx";
import { Foreign } from "./Foreign.tsx";
import { isWithin, type NamespaceNode, namespaceTree, partsOf } from "./namespaces.ts";

const text = operate.store;
/** Siblings that are listed at once. */
const SIBLINGS = 100;

/** Namespaces to choose from. Each level is a list of its own, closed at first. */
export function NamespaceTree({ paths }: { paths: readonly (readonly string[])[] }) {
  const { query } = usePageLocation();
  const tree = useMemo(() => namespaceTree(paths), [paths]);
  const chosen = partsOf(query.get("ns"));
  return (
    <div className="operate-tree">
      <div className="operate-tree-row">
        <NamespaceLink path={[]} name={text.everything} isChosen={chosen.length === 0} />
      </div>
      <Level nodes={tree} chosen={chosen} />
    </div>
  );
}

function NamespaceLink({ path, name, isChosen }: { path: string[]; name: string; isChosen: boolean }) {
  const { query } = usePageLocation();
  const prefix = query.get("prefix") ?? undefined;
  return (
    <Link
      href={hrefOf(["store"], { prefix, ns: path.join(".") })}
      aria-current={isChosen ? "true" : undefined}
    >
      <Foreign text={name} max={60} />
    </Link>
  );
}

function Level({ nodes, chosen }: { nodes: readonly NamespaceNode[]; chosen: readonly string[] }) {
  const [count, setCount] = useState(SIBLINGS);
  return (
    <ul>
      {nodes.slice(0, count).map((node) => (
        <Node key={node.name} node={node} chosen={chosen} />
      ))}
      {nodes.length > count && (
        <li>
          <Button kind="quiet" onClick={() => setCount(count + SIBLINGS)}>
            {operate.showMore(Math.min(SIBLINGS, nodes.length - count))}
          </Button>
        </li>
      )}
    </ul>
  );
}

function Node({ node, chosen }: { node: NamespaceNode; chosen: readonly string[] }) {
  const isAbove = chosen.length > 0 && isWithin(chosen, node.path);
  const [isOpen, setIsOpen] = useState(isAbove);
  const isChosen = isAbove && chosen.length === node.path.length;
  return (
    <li>
      <div className="operate-tree-row">
        {node.children.length > 0 ? (
          <Button
            kind="quiet"
            aria-expanded={isOpen}
            aria-label={isOpen ? text.collapse(visibleText(node.name)) : text.expand(visibleText(node.name))}
            onClick={() => setIsOpen(!isOpen)}
          >
            <span className="operate-chevron" aria-hidden="true">
              ›
            </span>
          </Button>
        ) : (
          <span className="operate-tree-leaf" />
        )}
        <NamespaceLink path={node.path} name={node.name} isChosen={isChosen} />
      </div>
      {isOpen && node.children.length > 0 && <Level nodes={node.children} chosen={chosen} />}
    </li>
  );
}
