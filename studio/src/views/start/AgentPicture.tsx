import type { ReactNode } from "react";

import type { AgentName } from "../../pure/input_form.ts";

const note = <path d="M10 6h20l8 8v28H10zM30 6v8h8M16 20h14M16 27h10" />;
const PICTURES: Record<AgentName | "chat" | "graph", ReactNode> = {
  analyze: (
    <>
      {note}
      <circle cx="32" cy="32" r="7" className="picture-fill" />
      <path d="m37 37 6 6" />
    </>
  ),
  sheet: (
    <>
      <rect x="7" y="9" width="34" height="30" rx="2" />
      <rect x="19" y="19" width="11" height="10" className="picture-fill" />
      <path d="M7 19h34M7 29h34M19 9v30M30 9v30" />
    </>
  ),
  docs: (
    <>
      <path d="M6 12h12l3 4h14v22H6z" className="picture-fill" />
      <path d="M28 8h14v26h-7M32 14h6M32 19h6" />
    </>
  ),
  atris: (
    <>
      <path d="M16 12 6 24l10 12M32 12l10 12-10 12" />
      <circle cx="24" cy="24" r="4" className="picture-fill" />
    </>
  ),
  email_assistant: (
    <>
      <rect x="6" y="11" width="36" height="26" rx="2" className="picture-fill" />
      <path d="m6 14 18 13 18-13" />
    </>
  ),
  chat: (
    <>
      <path d="M6 10h28v18H18l-7 6v-6H6z" className="picture-fill" />
      <path d="M38 18h4v16h-4v6l-6-6H20" />
    </>
  ),
  graph: (
    <>
      <path d="M14 24 32 12M14 24l18 12" />
      <circle cx="12" cy="24" r="5" className="picture-fill" />
      <circle cx="35" cy="11" r="5" className="picture-fill" />
      <circle cx="35" cy="37" r="5" className="picture-fill" />
    </>
  ),
};

/** A picture of what an assistant is for. The words next to it say the same. */
export function AgentPicture({ name }: { name: keyof typeof PICTURES }) {
  return (
    <svg className="picture" viewBox="0 0 48 48" aria-hidden="true">
      {PICTURES[name]}
    </svg>
  );
}
