import { useQuery } from "@tanstack/react-query";

import { meQuery } from "../api/queries.ts";
import type { Permission } from "../api/types.ts";

/** Returns a function that says what the visitor may do. Before the server said it, nothing. */
export function useMay(): (permission: Permission) => boolean {
  const { data } = useQuery(meQuery);
  return (permission) => data?.permissions.includes(permission) ?? false;
}
