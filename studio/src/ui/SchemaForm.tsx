import type { Json } from "../api/json.ts";

export interface SchemaFormProps {
  /** A JSON Schema; what it does not describe is entered as JSON. */
  schema: unknown;
  value: Json;
  onChange: (value: Json) => void;
  /** Begins the ids of its fields. */
  idPrefix: string;
  isDisabled?: boolean;
}

export function SchemaForm(_: SchemaFormProps) {
  return null;
}
