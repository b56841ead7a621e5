import "./markdown.css";

import { Fragment, memo, type ReactNode, useMemo, useRef, useState } from "react";

import { ownParts } from "../pure/live_text.ts";
import { type Block, type Inline, parseMarkdown, splitMarkdown, visibleText } from "../pure/markdown.ts";
import { common } from "../text/common.ts";
import { messages as text } from "../text/messages.ts";

/**
 * Markdown as elements. No HTML, no links that leave the page unseen, no images. The text is hostile: headings are not headings of the
 * page, and addresses are shown in full.
 */
export function Markdown({ text }: { text: string }) {
  // Parts that do not change while a text grows are drawn once.
  const drawn = useRef<readonly string[]>([]);
  const parts = useMemo(() => ownParts(splitMarkdown(text), drawn.current), [text]);
  drawn.current = parts;
  return (
    <div className="md" dir="auto">
      {parts.map((part, index) => (
        <MarkdownPart key={index} text={part} />
      ))}
    </div>
  );
}

const MarkdownPart = memo(function MarkdownPart({ text }: { text: string }) {
  return <>{parseMarkdown(text).map(blockElement)}</>;
});

function blockElement(block: Block, key: number): ReactNode {
  switch (block.kind) {
    case "paragraph":
      return <p key={key}>{block.children.map(inlineElement)}</p>;
    case "heading":
      return (
        <p key={key} className="md-heading" data-level={block.level}>
          {block.children.map(inlineElement)}
        </p>
      );
    case "code":
      return (
        <pre key={key} className="md-code" dir="ltr" data-language={block.language || undefined}>
          <code>{visibleText(block.text)}</code>
        </pre>
      );
    case "quote":
      return <blockquote key={key}>{block.children.map(blockElement)}</blockquote>;
    case "list":
      return listElement(block, key);
    case "table":
      return tableElement(block, key);
    case "rule":
      return <hr key={key} />;
  }
}

function listElement(block: Extract<Block, { kind: "list" }>, key: number): ReactNode {
  const items = block.items.map((item, index) => <li key={index}>{item.map(blockElement)}</li>);
  if (block.start === undefined) return <ul key={key}>{items}</ul>;
  return (
    <ol key={key} start={block.start}>
      {items}
    </ol>
  );
}

function tableElement(block: Extract<Block, { kind: "table" }>, key: number): ReactNode {
  const columns = block.head.length;
  return (
    // A table that is too wide is scrolled, by keyboard too.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, the keyboard could not scroll the table.
    <section key={key} className="table-scroll md-table" tabIndex={0} aria-label={text.table}>
      <table>
        <thead>
          <tr>
            {block.head.map((cell, index) => (
              <th key={index}>{cell.map(inlineElement)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {block.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column} colSpan={column === row.length - 1 ? columns - column : 1}>
                  {cell.map(inlineElement)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function inlineElement(node: Inline, key: number): ReactNode {
  switch (node.kind) {
    case "text":
      return <Fragment key={key}>{visibleText(node.text)}</Fragment>;
    case "code":
      return <code key={key}>{visibleText(node.text)}</code>;
    case "break":
      return <br key={key} />;
    case "strong":
      return <strong key={key}>{node.children.map(inlineElement)}</strong>;
    case "em":
      return <em key={key}>{node.children.map(inlineElement)}</em>;
    case "del":
      return <del key={key}>{node.children.map(inlineElement)}</del>;
    case "image":
      return (
        <span key={key} className="md-image">
          {text.image(visibleText(node.text))} <Address address={node.address} />
        </span>
      );
    case "link":
      return <LinkText key={key} node={node} />;
  }
}

/** A link as text: where it leads is seen before anyone goes there, and going there is up to the reader. */
function LinkText({ node }: { node: Extract<Inline, { kind: "link" }> }) {
  const [only] = node.children;
  const isBare = node.children.length === 1 && only?.kind === "text" && only.text === node.address;
  return (
    <span className="md-link">
      {!isBare && <>{node.children.map(inlineElement)} </>}
      <Address address={node.address} />
    </span>
  );
}

function Address({ address }: { address: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const shown = visibleText(address);
  const copy = () => {
    void navigator.clipboard.writeText(address).then(() => {
      setIsCopied(true);
      setTimeout(() => setIsCopied(false), 2000);
    });
  };
  return (
    <span className="md-address">
      <bdi className="mono" dir="ltr">
        {shown}
      </bdi>
      <button type="button" className="md-copy" aria-label={text.copyAddress(shown)} onClick={copy}>
        {isCopied ? common.copied : common.copy}
      </button>
    </span>
  );
}
