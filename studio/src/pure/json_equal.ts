/** Whether two values are the same JSON. */

import { isObject, type Json } from "../api/json.ts";

export function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, at) => isSame(item, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
  );
}

/** Whether two answers say the same. The server stores an answer in the form that its node reads. */
export function isSameAnswer(sent: Json, stored: unknown): boolean {
  const plain = (answer: unknown): unknown => {
    const only = Array.isArray(answer) && answer.length === 1 ? answer[0] : answer;
    if (!isObject(only)) return only;
    return Object.fromEntries(Object.entries(only).filter(([, value]) => value !== null));
  };
  return isSame(plain(sent), plain(stored));
}
