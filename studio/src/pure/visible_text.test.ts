import { expect, test } from "vitest";

import { dictionary } from "./dictionary.ts";
import { visibleText } from "./visible_text.ts";

test.each([
  ["a\u202egpj.exe\u2066b\u0000", "a⟨U+202E⟩gpj.exe⟨U+2066⟩b⟨U+0000⟩"],
  ["a\u2028b\u3164\u{e0041}", "a⟨U+2028⟩b⟨U+3164⟩⟨U+E0041⟩"],
  ["\u001b[2J\u0007", "⟨U+001B⟩[2J⟨U+0007⟩"],
  ["a\tb\nנ 👩‍👩‍👧 می‌شود", "a\tb\nנ 👩‍👩‍👧 می‌شود"],
  [`Z${"\u0301".repeat(500)}algo`, `Z${"\u0301".repeat(8)}…algo`],
])("%j", (text, expected) => {
  expect(visibleText(text)).toBe(expected);
});

test("a dictionary has its own words only", () => {
  const words = dictionary({ mail: "Email" });
  expect(words.mail).toBe("Email");
  for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty"])
    expect(words[name]).toBeUndefined();
});
