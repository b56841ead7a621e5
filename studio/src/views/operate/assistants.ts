import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { assistantsQuery } from "../../api/queries.ts";
import type { Assistant } from "../../api/types.ts";
import { visibleText } from "../../pure/visible_text.ts";
import { operate } from "../../text/operate.ts";

/** Returns the assistants, and a function that names one by its id. */
export function useAssistants(): { assistants: readonly Assistant[]; nameOf: (id: string) => string } {
  const { data } = useQuery(assistantsQuery);
  return useMemo(() => {
    const assistants = data?.map((assistant) => ({ ...assistant, name: visibleText(assistant.name) })) ?? [];
    const names = new Map(assistants.map((assistant) => [assistant.assistant_id, assistant.name]));
    return {
      assistants,
      nameOf: (id) => names.get(id) ?? (data ? operate.deletedAssistant : "…"),
    };
  }, [data]);
}
