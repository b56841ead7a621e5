import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { beginning, withVisibleControls } from "./foreign.ts";

describe("text of others", () => {
  test("characters that turn text around are written out", () => {
    expect(withVisibleControls("a\u202Eb\u0000\n\tc")).toBe("a⟨U+202E⟩b⟨U+0000⟩\n\tc");
    expect(withVisibleControls("👩‍💻 می‌خواهم")).toBe("👩‍💻 می‌خواهم");
  });

  test("a beginning is a beginning, and whole characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 20 }), (text, length) => {
        const cut = beginning(text, length);
        expect(text.startsWith(cut.text)).toBe(true);
        expect(() => encodeURIComponent(cut.text)).not.toThrow();
        expect(cut.isCut).toBe(cut.text !== text);
      }),
    );
  });
});
