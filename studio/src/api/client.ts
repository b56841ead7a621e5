/** Requests to the server that serves the page. It is the only module that knows addresses and keys. */

import type { Json } from "./json.ts";

/** What the server refused, or that it could not be reached. */
export class ApiProblem extends Error {
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  readonly body: Json;

  constructor(status: number, message: string, body: Json = null) {
    super(message);
    this.name = "ApiProblem";
    this.status = status;
    this.body = body;
  }

  /** Whether the same request may succeed later. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export interface Page<T> {
  items: T[];
  /** The number of all items, if the server said it. */
  total: number | undefined;
  next: number | undefined;
}

export interface RequestOptions {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  query?: Record<string, string | number | boolean | undefined>;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  body?: Blob | ArrayBuffer;
  headers?: Record<string, string>;
  /** The server carries out one of the requests with the same key, and answers the others likewise. */
  key?: string;
  /** How long to wait for the beginning of the response. Default: 30 seconds for reading, no limit for the rest. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** The server's address: what is in front of `/studio/` in the address of the page. */
export function serverBase(pathname: string = location.pathname): string {
  const end = pathname.indexOf("/studio");
  return end < 0 ? "" : pathname.slice(0, end);
}

let apiKey: string | undefined;
const keyListeners = new Set<() => void>();

/** Sets the API key of further requests. It is in memory only, so other scripts and the next visitor cannot read it. */
export function setApiKey(key: string | undefined): void {
  apiKey = key;
  for (const listener of keyListeners) listener();
}

export function hasApiKey(): boolean {
  return apiKey !== undefined;
}

export function onApiKeyChange(listener: () => void): () => void {
  keyListeners.add(listener);
  return () => keyListeners.delete(listener);
}

/** Returns a key for a request that may be repeated. `crypto.randomUUID` is missing on pages without TLS. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

/** Sends a request and returns the response, if its status is good. */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  if (apiKey !== undefined) headers.set("x-api-key", apiKey);
  if (options.key !== undefined) headers.set("idempotency-key", options.key);
  const init: RequestInit = { method: options.method ?? "GET", headers, credentials: "same-origin" };
  if (options.json !== undefined) {
    headers.set("content-type", "application/json");
    init.body = JSON.stringify(options.json);
  } else if (options.body !== undefined) {
    init.body = options.body;
  }
  const response = await fetchInTime(address(path, options.query), init, options);
  if (!response.ok) throw await problemOf(response);
  return response;
}

let answeredAt: number | undefined;

/** Whether the server answered a request just now. The page asks for its inbox all the time. */
export function hasJustAnswered(): boolean {
  return answeredAt !== undefined && performance.now() - answeredAt < 2000;
}

/** A network may swallow a request without a word, so the page does not wait for ever. */
async function fetchInTime(url: string, init: RequestInit, options: RequestOptions): Promise<Response> {
  const late = new AbortController();
  const timeoutMs = options.timeoutMs ?? (init.method === "GET" ? 30_000 : undefined);
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => late.abort(), timeoutMs);
  const signals = [late.signal, ...(options.signal ? [options.signal] : [])];
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.any(signals) });
    answeredAt = performance.now();
    return response;
  } catch (error) {
    if (options.signal?.aborted) throw error;
    answeredAt = undefined;
    throw new ApiProblem(0, "The server cannot be reached.");
  } finally {
    clearTimeout(timer);
  }
}

/** Sends a request and returns the JSON of its response. */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(path, options);
  return (response.status === 204 ? null : await response.json()) as T;
}

/** Sends a request for a page of a list. */
export async function requestPage<T>(path: string, options: RequestOptions = {}): Promise<Page<T>> {
  const response = await send(path, options);
  const items = (await response.json()) as T[];
  return {
    items,
    total: numberOf(response.headers.get("x-pagination-total")),
    next: numberOf(response.headers.get("x-pagination-next")),
  };
}

function address(path: string, query: RequestOptions["query"]): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) params.set(name, String(value));
  }
  const text = params.toString();
  return `${serverBase()}${path}${text && `?${text}`}`;
}

async function problemOf(response: Response): Promise<ApiProblem> {
  const body: Json = await response.json().catch(() => null);
  const detail =
    body !== null && typeof body === "object" && !Array.isArray(body)
      ? (body.detail ?? body.message)
      : undefined;
  const message = typeof detail === "string" ? detail : `The server answered with status ${response.status}.`;
  return new ApiProblem(response.status, message, body);
}

function numberOf(text: string | null): number | undefined {
  const number = text === null ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : undefined;
}
