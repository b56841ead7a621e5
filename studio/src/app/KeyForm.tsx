import { type FormEvent, useState } from "react";

import { queryClient } from "../api/cache.ts";
import { hasApiKey, setApiKey } from "../api/client.ts";
import { text } from "../text/index.ts";
import { Button } from "../ui/Button.tsx";

/** Asks for an API key, if the server needs one. */
export function KeyForm() {
  const [key, setKey] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setApiKey(key.trim());
    void queryClient.resetQueries();
  };
  return (
    <main className="view">
      <form className="card stack" onSubmit={submit}>
        <h1>{text.common.product}</h1>
        <p>{text.common.keyWhy}</p>
        <div className="field">
          <label htmlFor="api-key">{text.common.keyTitle}</label>
          <input
            id="api-key"
            type="password"
            autoComplete="current-password"
            value={key}
            onChange={(event) => setKey(event.target.value)}
            aria-invalid={hasApiKey()}
          />
          {hasApiKey() && (
            <p className="field-problem" role="alert">
              {text.common.keyWrong}
            </p>
          )}
        </div>
        <Button kind="primary" type="submit" disabled={key.trim() === ""}>
          {text.common.keyEnter}
        </Button>
      </form>
    </main>
  );
}
