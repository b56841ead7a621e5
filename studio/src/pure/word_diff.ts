/** The difference of two texts, word by word. */

export interface TextPart {
  kind: "same" | "added" | "removed";
  text: string;
}

/** The most comparisons of words: beyond them, lines are compared, and then nothing. */
const COMPARISONS_MAX = 1_000_000;

/** Returns the parts of two texts. Those that are not added are the first text; those that are not removed, the second. */
export function wordDiff(before: string, after: string): TextPart[] {
  if (before === after) return before ? [{ kind: "same", text: before }] : [];
  for (const pattern of [/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu, /[^\n]*\n|[^\n]+/g]) {
    const parts = diffOf(before.match(pattern) ?? [], after.match(pattern) ?? []);
    if (parts) return parts;
  }
  return merged([
    { kind: "removed", text: before },
    { kind: "added", text: after },
  ]);
}

/** Compares lists of words; `undefined` if they are too long for it. */
function diffOf(before: string[], after: string[]): TextPart[] | undefined {
  let first = 0;
  while (first < before.length && first < after.length && before[first] === after[first]) first++;
  let [endBefore, endAfter] = [before.length, after.length];
  while (endBefore > first && endAfter > first && before[endBefore - 1] === after[endAfter - 1]) {
    endBefore--;
    endAfter--;
  }
  const middle = longestCommon(before.slice(first, endBefore), after.slice(first, endAfter));
  if (!middle) return undefined;
  return merged([
    { kind: "same", text: before.slice(0, first).join("") },
    ...middle,
    { kind: "same", text: before.slice(endBefore).join("") },
  ]);
}

function longestCommon(before: string[], after: string[]): TextPart[] | undefined {
  const width = after.length + 1;
  if (before.length * after.length > COMPARISONS_MAX) return undefined;
  // The length of the longest common part of what follows, for every two places.
  const lengths = new Uint32Array((before.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const parts: TextPart[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      parts.push({ kind: "same", text: before[i++] ?? "" });
      j++;
    } else if (i < before.length && (j === after.length || at(i + 1, j) >= at(i, j + 1))) {
      parts.push({ kind: "removed", text: before[i++] ?? "" });
    } else {
      parts.push({ kind: "added", text: after[j++] ?? "" });
    }
  }
  return parts;
}

function merged(parts: TextPart[]): TextPart[] {
  const result: TextPart[] = [];
  for (const part of parts) {
    const last = result.at(-1);
    if (part.text === "") continue;
    if (last?.kind === part.kind) last.text += part.text;
    else result.push({ ...part });
  }
  return result;
}
