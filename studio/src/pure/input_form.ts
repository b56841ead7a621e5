/** Forms for starting assistants: which fields they have, and what the graph gets. */

import { isObject, type Json, type JsonObject, textOf } from "../api/json.ts";
import { start } from "../text/start.ts";

export type AgentName = keyof typeof start.agents;

/** How an assistant is started. */
export type StartKind =
  | { kind: "agent"; agent: AgentName }
  /** The channel that holds the conversation. */
  | { kind: "chat"; channel: string }
  | { kind: "schema" }
  /** Callers cannot give it an input. */
  | { kind: "closed" };

export function isAgent(graph: string): graph is AgentName {
  return Object.hasOwn(start.agents, graph);
}

export function startKind(graph: string, inputSchema: unknown): StartKind {
  if (isAgent(graph)) return { kind: "agent", agent: graph };
  const properties = isObject(inputSchema) ? inputSchema.properties : undefined;
  if (!isObject(properties)) return { kind: "schema" };
  const names = Object.keys(properties);
  if (names.length === 0) return { kind: "closed" };
  const channel = names.find((name) => textOf(properties[name], "langgraph_type") === "messages");
  return channel === undefined ? { kind: "schema" } : { kind: "chat", channel };
}

/** Names of the fields of a state that callers may write. */
export function inputNames(inputSchema: unknown): string[] {
  const properties = isObject(inputSchema) ? inputSchema.properties : undefined;
  return isObject(properties) ? Object.keys(properties) : [];
}

const WRITERS = [
  "file-structure",
  "dependency-analyzer",
  "architecture-analyzer",
  "flow-analyzer",
  "schema-analyzer",
  "pattern-analyzer",
  "security-analyzer",
];

const text = (title: string, more: JsonObject = {}): JsonObject => ({ type: "string", title, ...more });
const long = (title: string) => text(title, { format: "multiline" });

/** Schemas of forms for the five agents: what their own schemas leave open, in plain words. */
export function agentSchema(agent: AgentName): JsonObject {
  const { fields } = start;
  const form = (properties: JsonObject, required: string[]): JsonObject => ({
    type: "object",
    properties,
    required,
  });
  switch (agent) {
    case "analyze":
      return form({ question: long(fields.question) }, ["question"]);
    case "sheet":
      return form(
        {
          instruction: long(fields.instruction),
          context: long(fields.background),
          with_informer: { type: "boolean", title: fields.informer },
          max_steps: { type: "integer", title: fields.steps, minimum: 1 },
        },
        ["instruction"],
      );
    case "docs":
      return form(
        {
          agents: {
            type: "array",
            title: fields.writers,
            description: fields.writersHint,
            uniqueItems: true,
            items: { type: "string", enum: WRITERS },
          },
          maxIterations: { type: "integer", title: fields.iterations, minimum: 0 },
          clarityThreshold: { type: "integer", title: fields.threshold, minimum: 0, maximum: 100 },
          gate: { type: "boolean", title: fields.gate },
        },
        [],
      );
    case "atris":
      return form({ query: long(fields.query) }, ["query"]);
    case "email_assistant":
      return form(
        {
          from: text(fields.from),
          to: text(fields.to),
          cc: text(fields.cc),
          subject: text(fields.subject),
          body: long(fields.body),
        },
        ["from", "to", "body"],
      );
  }
}

/** What an agent reads from files. */
export type FileNeed = "notes" | "workbook" | "folder" | undefined;

export function fileNeed(agent: AgentName): FileNeed {
  const needs = {
    analyze: "notes",
    sheet: "workbook",
    docs: "folder",
    atris: undefined,
    email_assistant: undefined,
  } as const;
  return needs[agent];
}

/** An example that can be filled in, with files where the agent needs some that can be made up. */
export function agentExample(agent: AgentName): {
  value: JsonObject;
  files: { path: string; text: string }[];
} {
  const { examples } = start;
  switch (agent) {
    case "analyze":
      return {
        value: { question: examples.question },
        files: [{ path: examples.noteName, text: examples.note }],
      };
    case "sheet":
      return { value: { instruction: examples.instruction }, files: [] };
    case "docs":
      return {
        value: { agents: ["file-structure"], gate: true },
        files: [
          { path: examples.readmeName, text: examples.readme },
          { path: examples.sourceName, text: examples.source },
        ],
      };
    case "atris":
      return { value: { query: examples.query }, files: [] };
    case "email_assistant": {
      const { from, to, subject, body } = examples;
      return { value: { from, to, subject, body }, files: [] };
    }
  }
}

/** Names of required fields that are empty, as the form shows them. */
export function missingFields(agent: AgentName, value: JsonObject, files: readonly string[]): string[] {
  const schema = agentSchema(agent);
  const required = Array.isArray(schema.required) ? schema.required : [];
  const properties = isObject(schema.properties) ? schema.properties : {};
  const missing = required.filter((name) => typeof name === "string" && isEmpty(value[name]));
  const names = missing.map((name) => textOf(properties[String(name)], "title") ?? String(name));
  return fileNeed(agent) && files.length === 0 ? [...names, start.agents[agent].files] : names;
}

/** Returns what the graph gets. `id` names a mail that has none; `files` are the paths of uploaded files. */
export function agentInput(
  agent: AgentName,
  value: JsonObject,
  files: readonly string[],
  id: string,
): JsonObject {
  const filled = Object.fromEntries(Object.entries(value).filter(([, each]) => !isEmpty(each)));
  switch (agent) {
    case "analyze":
      return { userInput: `analyze: ${textOf(value, "question") ?? ""}`, noteFiles: topNames(files) };
    case "sheet":
      return { task: { workbook: files[0] ?? "", ...filled } };
    case "docs":
      return { task: { folder: topNames(files)[0] ?? "", ...filled } };
    case "atris":
      return { query: textOf(value, "query") ?? "" };
    case "email_assistant": {
      const { body, ...head } = filled;
      const to = textOf(value, "to") ?? "";
      return {
        email_input: { id, message_id: `${id}@studio`, ...head, account: to, page_content: body ?? "" },
      };
    }
  }
}

function isEmpty(value: Json | undefined): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === "string" ? value.trim() === "" : Array.isArray(value) && value.length === 0;
}

/** The first parts of paths, each once. */
export function topNames(paths: readonly string[]): string[] {
  return [...new Set(paths.map((path) => path.split("/", 1)[0] ?? path))];
}

export type Refusal = keyof typeof start.refusals;

export interface ChosenFile {
  path: string;
  bytes: number;
}

export interface FileChoice<T extends ChosenFile> {
  accepted: T[];
  refused: { path: string; why: Refusal }[];
}

const FILE_BYTES_MAX = 32 * 1024 * 1024;
const ALL_BYTES_MAX = 256 * 1024 * 1024;
const FILES_MAX = 10_000;

/** Divides chosen files into those that the server accepts and the agent needs, and the others. A later file replaces one of the same path. */
export function checkFiles<T extends ChosenFile>(chosen: readonly T[], need: FileNeed): FileChoice<T> {
  const refused: { path: string; why: Refusal }[] = [];
  const accepted = new Map<string, T>();
  let bytes = 0;
  for (const file of chosen) {
    const before = accepted.get(file.path);
    const left = bytes - (before?.bytes ?? 0);
    const why = refusalOf(file, need) ?? limitOf(left + file.bytes, before ? 0 : accepted.size + 1);
    if (why) {
      refused.push({ path: file.path, why });
      continue;
    }
    if (need === "workbook") {
      // The newest choice counts.
      for (const path of accepted.keys()) if (path !== file.path) refused.push({ path, why: "one" });
      accepted.clear();
    }
    accepted.set(file.path, file);
    bytes = need === "workbook" ? file.bytes : left + file.bytes;
  }
  return { accepted: [...accepted.values()], refused };
}

function limitOf(bytes: number, count: number): Refusal | undefined {
  if (count > FILES_MAX) return "many";
  return bytes > ALL_BYTES_MAX ? "total" : undefined;
}

function refusalOf(file: ChosenFile, need: FileNeed): Refusal | undefined {
  const parts = file.path.split("/");
  if (parts.some((part) => /^[. ]|[. ]$/.test(part))) return "hidden";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what the server refuses.
  if (parts.some((part) => part === "" || /[\\:\u0000-\u001f\u007f-\u009f]|\p{Cf}|\p{Zl}|\p{Zp}/u.test(part)))
    return "name";
  if (file.bytes > FILE_BYTES_MAX) return "large";
  return need === "workbook" && !/\.xlsx$/i.test(file.path) ? "kind" : undefined;
}

/** Returns the paths under which files are uploaded. `docs` describes one folder, so loose files get one. */
export function uploadPaths(paths: readonly string[], need: FileNeed): string[] {
  const isOneFolder = topNames(paths).length === 1 && paths.every((path) => path.includes("/"));
  return need === "folder" && !isOneFolder ? paths.map((path) => `folder/${path}`) : [...paths];
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** Reads JSON; an empty text is `undefined`. */
export function readJson(source: string): { value: Json | undefined } | { problem: string } {
  if (source.trim() === "") return { value: undefined };
  try {
    return { value: JSON.parse(source) as Json };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

export interface Settings {
  config: JsonObject;
  context: JsonObject;
}

/**
 * Returns what a run must send to have the settings of a version. A run begins with those of the version in use and adds what it
 * sends, so what only the version in use sets stays: `inherited` names it.
 */
export function settingsOf(version: Settings, inUse: Settings): Settings & { inherited: string[] } {
  const inherited = Object.keys(inUse.context).filter((name) => !Object.hasOwn(version.context, name));
  return { config: version.config, context: version.context, inherited };
}

/** A value as the state channel takes it as a whole: reducers would add it to what is there. */
export function overwriting(value: Json): Json {
  return typeof value === "object" && value !== null ? { __overwrite__: value } : value;
}
