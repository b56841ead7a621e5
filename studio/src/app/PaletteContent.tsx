import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "react";

import { assistantsQuery, inboxQuery, threadsQuery } from "../api/queries.ts";
import type { InboxItem, Thread } from "../api/types.ts";
import { subjectOf } from "../pure/inbox_order.ts";
import { type PaletteEntry, type PaletteGroup, searchEntries } from "../pure/palette_search.ts";
import { common } from "../text/common.ts";
import { inbox } from "../text/inbox.ts";
import { palette as text } from "../text/palette.ts";
import { Button } from "../ui/Button.tsx";
import { type Direction, setDirection } from "./direction.ts";
import { hrefOf, navigate } from "./location.ts";
import { useMay } from "./me.ts";
import { SECTIONS } from "./sections.ts";
import "./palette.css";

type Group = keyof typeof text.groups;

interface Entry extends PaletteEntry<Group> {
  /** Where it leads. */
  href?: string;
  /** What it does, if it leads nowhere. */
  run?: () => void;
}

/** Threads that are searched by their text. */
const THREADS = 100;
const SHOWN_PER_GROUP = 8;

interface Query {
  query: string;
  onQuery: (query: string) => void;
}

export interface PaletteContentProps extends Query {
  shows: "search" | "help";
  onHelp: () => void;
  onClose: () => void;
  /** Gets what a command did. */
  onSaid: (said: string) => void;
}

/** What is in the dialog of the command palette. It is loaded apart, because the first view does not need it. */
export default function PaletteContent(props: PaletteContentProps) {
  const { shows, query, onQuery, onHelp, onClose, onSaid } = props;
  if (shows === "help") return <Help onClose={onClose} />;
  const choose = (entry: Entry) => {
    // The browser returns the focus to where it was.
    if (entry.id !== "help") onClose();
    entry.run?.();
    if (entry.href === undefined) return;
    navigate(entry.href);
    document.getElementById("main")?.focus();
  };
  const copyLink = async () => onSaid((await copyAddress()) ? text.linkCopied : text.linkNotCopied);
  const commands = { onHelp, onCopy: () => void copyLink() };
  return <Search query={query} onQuery={onQuery} onChoose={choose} commands={commands} />;
}

async function copyAddress(): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(location.href);
    return true;
  } catch {
    return false;
  }
}

interface Commands {
  onHelp: () => void;
  onCopy: () => void;
}

interface SearchProps extends Query {
  onChoose: (entry: Entry) => void;
  commands: Commands;
}

function Search({ query, onQuery, onChoose, commands }: SearchProps) {
  const [activeId, setActiveId] = useState<string>();
  const entries = useEntries(commands);
  const groups = useMemo(
    () => searchEntries(query, [...exactThread(query, entries), ...entries], SHOWN_PER_GROUP),
    [query, entries],
  );
  const found = groups.flatMap((group) => group.entries);
  const at = Math.max(
    0,
    found.findIndex((entry) => entry.id === activeId),
  );
  const active = found[at];
  const listId = useId();
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    input.current?.focus();
    // There may be text in it that was typed before.
    input.current?.setSelectionRange(query.length, query.length);
  }, []);
  const press = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0 && found.length > 0) {
      event.preventDefault();
      setActiveId(found[(at + step + found.length) % found.length]?.id);
    } else if (event.key === "Enter" && active && !event.nativeEvent.isComposing) {
      event.preventDefault();
      onChoose(active);
    }
  };
  return (
    <div className="palette-body">
      <input
        ref={input}
        className="input"
        role="combobox"
        aria-label={text.label}
        aria-expanded={found.length > 0}
        aria-controls={listId}
        aria-autocomplete="list"
        aria-activedescendant={active && `${listId}-${active.id}`}
        aria-describedby={`${listId}-hint`}
        placeholder={text.placeholder}
        autoComplete="off"
        spellCheck={false}
        value={query}
        onKeyDown={press}
        onChange={(event) => {
          onQuery(event.target.value);
          setActiveId(undefined);
        }}
      />
      <Results
        listId={listId}
        groups={groups}
        activeId={active?.id}
        onActive={setActiveId}
        onChoose={onChoose}
      />
      <p role="status" className={found.length > 0 ? "visually-hidden" : "muted"}>
        {found.length > 0 ? text.count(found.length) : text.none}
      </p>
      <p id={`${listId}-hint`} className="muted small">
        {text.hint} {text.threadsNote(THREADS)}
      </p>
    </div>
  );
}

interface ResultsProps {
  listId: string;
  groups: readonly PaletteGroup<Entry>[];
  activeId: string | undefined;
  onActive: (id: string) => void;
  onChoose: (entry: Entry) => void;
}

function Results({ listId, groups, activeId, onActive, onChoose }: ResultsProps) {
  return (
    <div id={listId} role="listbox" aria-label={text.results} className="palette-results" tabIndex={-1}>
      {groups.map(({ group, entries }) => (
        // biome-ignore lint/a11y/useSemanticElements: a group of options in a list box; a fieldset may not be there
        <div key={group} role="group" aria-labelledby={`${listId}-${group}`}>
          <p id={`${listId}-${group}`} className="palette-group small muted" role="presentation">
            {text.groups[group as Group]}
          </p>
          {entries.map((entry) => (
            <Option
              key={entry.id}
              id={`${listId}-${entry.id}`}
              entry={entry}
              isActive={entry.id === activeId}
              onActive={onActive}
              onChoose={onChoose}
            />
          ))}
        </div>
      ))}
    </div>
  );
}

interface OptionProps extends Pick<ResultsProps, "onActive" | "onChoose"> {
  id: string;
  entry: Entry;
  isActive: boolean;
}

function Option({ id, entry, isActive, onActive, onChoose }: OptionProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isActive) element.current?.scrollIntoView({ block: "nearest" });
  }, [isActive]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the text field has the focus and takes the keys
    <div
      ref={element}
      id={id}
      role="option"
      aria-selected={isActive}
      tabIndex={-1}
      className="palette-option"
      onMouseMove={() => !isActive && onActive(entry.id)}
      onClick={() => onChoose(entry)}
    >
      <bdi>{entry.title}</bdi>
      {entry.detail && <bdi className="muted small">{entry.detail}</bdi>}
    </div>
  );
}

function Help({ onClose }: { onClose: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => box.current?.querySelector("button")?.focus(), []);
  return (
    <div className="dialog-body" ref={box}>
      <h2>{text.helpTitle}</h2>
      {text.helpGroups.map(({ name, keys }) => (
        <section key={name} className="stack">
          <h3>{name}</h3>
          <dl className="palette-keys">
            {keys.map(([key, does]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <div className="dialog-actions">
        <Button onClick={onClose}>{common.close}</Button>
      </div>
    </div>
  );
}

/** Everything that can be found. Threads are asked for once, so that the list does not change while one chooses. */
function useEntries(commands: Commands): Entry[] {
  const may = useMay();
  const isAdmin = may("admin");
  const mayRun = may("run");
  const threads = useQuery({ ...threadsQuery({ limit: THREADS, offset: 0 }), refetchInterval: false });
  const inbox = useQuery(inboxQuery({ limit: 100, offset: 0 }));
  const assistants = useQuery(assistantsQuery);
  const { onHelp, onCopy } = commands;
  return useMemo(
    () => [
      ...sectionEntries(isAdmin),
      ...(inbox.data?.items ?? []).map(inboxEntry),
      ...(mayRun ? (assistants.data ?? []) : []).map(
        (assistant): Entry => ({
          id: `start-${assistant.assistant_id}`,
          group: "assistants",
          title: text.start(shown(assistant.name)),
          detail: assistant.name === assistant.graph_id ? undefined : shown(assistant.graph_id),
          keywords: shown(assistant.description ?? ""),
          href: hrefOf(["start", assistant.assistant_id]),
        }),
      ),
      ...(threads.data?.items ?? []).map(threadEntry),
      ...commandEntries(onHelp, onCopy),
    ],
    [isAdmin, mayRun, threads.data, inbox.data, assistants.data, onHelp, onCopy],
  );
}

function sectionEntries(isAdmin: boolean): Entry[] {
  return SECTIONS.filter((section) => !section.isAdmin || isAdmin).map(({ name, group }) => ({
    id: `section-${name}`,
    group: "sections",
    title: common.sections[name],
    detail: common.groups[group],
    keywords: name,
    href: hrefOf([name]),
  }));
}

function inboxEntry(item: InboxItem): Entry {
  return {
    id: `inbox-${item.interrupt.id}`,
    group: "inbox",
    title: shown(subjectOf(item)),
    detail: `${shown(inbox.agents[item.graph_id] ?? item.graph_id)} · ${shown(item.node)}`,
    keywords: `${item.kind} ${item.thread_id}`,
    href: hrefOf(["inbox"], { item: item.interrupt.id }),
  };
}

function threadEntry(thread: Thread): Entry {
  const { graph_id, assistant_id: _, ...metadata } = thread.metadata as Record<string, unknown>;
  const values = Object.entries(metadata).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return {
    id: `thread-${thread.thread_id}`,
    group: "threads",
    title: `${shown(typeof graph_id === "string" ? graph_id : "—")} · ${thread.status}`,
    detail: shown([thread.thread_id, ...values].join(" · ")),
    keywords: values.join(" "),
    href: hrefOf(["threads", thread.thread_id]),
  };
}

function commandEntries(onHelp: () => void, onCopy: () => void): Entry[] {
  const themes = Object.entries(text.themes).map(
    ([theme, title]): Entry => ({
      id: `theme-${theme}`,
      group: "commands",
      title,
      keywords: text.themeWords,
      run: () => setTheme(theme),
    }),
  );
  const directions = Object.entries(text.directions).map(
    ([direction, title]): Entry => ({
      id: `direction-${direction}`,
      group: "commands",
      title,
      keywords: text.directionWords,
      run: () => setDirection(direction as Direction),
    }),
  );
  return [
    ...themes,
    ...directions,
    { id: "copy-link", group: "commands", title: text.copyLink, keywords: text.copyWords, run: onCopy },
    { id: "help", group: "commands", title: text.help, keywords: text.helpWords, run: onHelp },
  ];
}

/** Changes the theme as the menu does, and tells the menu: it hears what other tabs store, too. */
function setTheme(theme: string): void {
  localStorage.setItem("theme", theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  window.dispatchEvent(new StorageEvent("storage", { key: "theme", newValue: theme }));
}

/** A whole id leads to its thread, also if that is not among the newest. */
function exactThread(query: string, entries: readonly Entry[]): Entry[] {
  const id = query.trim().toLowerCase();
  const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id);
  if (!isId || entries.some((entry) => entry.id === `thread-${id}`)) return [];
  return [{ id: `exact-${id}`, group: "threads", title: text.openThread(id), href: hrefOf(["threads", id]) }];
}

/** Text of others: one short line, without characters that turn text around or hide it. */
function shown(value: string): string {
  const line = value
    .slice(0, 200)
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .trim();
  return line.length > 120 ? `${line.slice(0, 119)}…` : line;
}
