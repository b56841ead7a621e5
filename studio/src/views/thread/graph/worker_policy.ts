/**
 * The one place where the page names a script to run: the worker that lays out graphs.
 *
 * The page's policy (`require-trusted-types-for 'script'`) refuses a worker whose address is a plain string. So the server allows
 * exactly one policy by name, `trusted-types superstep#worker`, and that policy passes exactly one address.
 */

import workerUrl from "./layout_worker.ts?worker&url";

interface ScriptUrlPolicy {
  createScriptURL: (url: string) => string;
}

interface TrustedTypes {
  createPolicy: (name: string, rules: { createScriptURL: (url: string) => string }) => ScriptUrlPolicy;
}

let policy: ScriptUrlPolicy | undefined;

function trustedUrl(url: string): string {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  if (!types) return url;
  policy ??= types.createPolicy("superstep#worker", {
    createScriptURL: (asked) => {
      if (asked !== workerUrl) throw new TypeError("not the worker of this page");
      return asked;
    },
  });
  return policy.createScriptURL(url);
}

/** Starts the worker. Throws if the page's policy does not allow it. */
export function startLayoutWorker(): Worker {
  return new Worker(trustedUrl(workerUrl), { type: "module" });
}
