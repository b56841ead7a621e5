import { useQuery } from "@tanstack/react-query";
import { type RefObject, Suspense, useEffect, useLayoutEffect, useRef, useState } from "react";

import { meQuery } from "../api/queries.ts";
import { palette as text } from "../text/palette.ts";
import { Button } from "../ui/Button.tsx";
import { Loading } from "../ui/Notice.tsx";
import { ErrorBoundary } from "./ErrorBoundary.tsx";
import { lazyView, useLoadedWhenIdle } from "./lazy_view.ts";
import "./palette_frame.css";

const loadContent = () => import("./PaletteContent.tsx");
const PaletteContent = lazyView(loadContent);

/** The button and the shortcut of the command palette. The dialog opens at once, also while its content is loading. */
export function Palette() {
  const [shows, setShows] = useState<"search" | "help">();
  const [query, setQuery] = useState("");
  const [said, setSaid] = useState("");
  const dialog = useRef<HTMLDialogElement>(null);
  useShortcut(dialog, () => setShows("search"));
  useLoadedWhenIdle(useQuery(meQuery).isSuccess, loadContent);
  useLayoutEffect(() => {
    if (shows && dialog.current && !dialog.current.open) dialog.current.showModal();
  }, [shows]);
  return (
    <>
      <Button
        className="palette-button"
        aria-haspopup="dialog"
        aria-keyshortcuts="Control+K Meta+K"
        onClick={() => setShows("search")}
      >
        {text.open} <kbd>{text.shortcut}</kbd>
      </Button>
      <Said text={said} onOver={() => setSaid("")} />
      <dialog
        ref={dialog}
        className="dialog palette"
        aria-label={shows === "help" ? text.helpTitle : text.name}
        onClose={() => {
          setShows(undefined);
          setQuery("");
        }}
      >
        {shows && (
          <ErrorBoundary>
            <Suspense fallback={<EarlyInput query={query} onQuery={setQuery} />}>
              <PaletteContent
                shows={shows}
                query={query}
                onQuery={setQuery}
                onHelp={() => setShows("help")}
                onClose={() => dialog.current?.close()}
                onSaid={setSaid}
              />
            </Suspense>
          </ErrorBoundary>
        )}
      </dialog>
    </>
  );
}

/** Takes what is typed while the content is loading, which then continues with it. */
function EarlyInput({ query, onQuery }: { query: string; onQuery: (query: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current?.focus(), []);
  return (
    <div className="palette-body">
      <input
        ref={input}
        className="input"
        aria-label={text.label}
        placeholder={text.placeholder}
        autoComplete="off"
        spellCheck={false}
        value={query}
        onChange={(event) => onQuery(event.target.value)}
      />
      <Loading what={text.name} />
    </div>
  );
}

/** What a command did. It leaves by itself. */
function Said({ text: said, onOver }: { text: string; onOver: () => void }) {
  useEffect(() => {
    if (said === "") return;
    const timer = setTimeout(onOver, 4000);
    return () => clearTimeout(timer);
  }, [said, onOver]);
  return (
    <span role="status" className={said ? "palette-said small" : "visually-hidden"}>
      {said}
    </span>
  );
}

/** Ctrl K, or Cmd K. Not over another dialog: what was typed there would be lost by going elsewhere. */
function useShortcut(dialog: RefObject<HTMLDialogElement | null>, onOpen: () => void) {
  const open = useRef(onOpen);
  useEffect(() => {
    open.current = onOpen;
  });
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent) => {
      if (
        event.key.toLowerCase() !== "k" ||
        !(event.ctrlKey || event.metaKey) ||
        event.shiftKey ||
        event.altKey
      )
        return;
      event.preventDefault();
      if (dialog.current?.open) dialog.current.close();
      else if (!document.querySelector("dialog[open]")) open.current();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [dialog]);
}
