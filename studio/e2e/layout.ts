/** What a view must keep to, besides what axe checks: no sideways scrolling, targets that can be hit, focus that can be seen. */

import type { Page } from "playwright-core";

/** Everything that can be pressed or typed into. */
const CONTROLS =
  "a[href], button, input:not([type=hidden]), select, textarea, summary, [role=tab], [role=treeitem], [role=slider]";

/** Returns how far the page scrolls sideways, and what makes it so wide. */
export async function sidewaysScroll(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const roots = [document.documentElement, document.getElementById("main")].filter((each) => each !== null);
    return roots.flatMap((root) => {
      const extra = root.scrollWidth - root.clientWidth;
      if (extra <= 1) return [];
      const box = root.getBoundingClientRect();
      const isOut = (element: Element) => {
        const { left, right, width } = element.getBoundingClientRect();
        return width > 0 && (right > box.right + 1 || left < box.left - 1);
      };
      const widest = [...root.querySelectorAll("*")].filter(isOut).slice(0, 3);
      const names = widest.map(({ tagName, className }) => `${tagName.toLowerCase()}.${String(className)}`);
      return [`#${root.id || "html"} scrolls ${extra} px: ${names.join(", ")}`];
    });
  });
}

/**
 * Returns controls that are smaller than a size. Links within a sentence may be small (WCAG 2.5.8), and so may a box whose
 * label can be pressed instead. The drawing of a graph can have any size: its outline has the same controls (2.5.8, equivalent).
 */
export async function smallTargets(page: Page, size: number, within = "body"): Promise<string[]> {
  return await page.evaluate(
    ({ controls, size, within }) => {
      const scope = document.querySelector(within);
      if (!scope) return [];
      const top = document.querySelector("dialog[open]") ?? scope;
      return [...top.querySelectorAll<HTMLElement>(controls)].flatMap((control) => {
        if (!control.checkVisibility({ visibilityProperty: true, opacityProperty: false })) return [];
        if (
          control.closest(".visually-hidden, .skip, .graph-canvas .react-flow") ||
          control.matches(":disabled")
        )
          return [];
        const isInText = control.matches("a") && getComputedStyle(control).display === "inline";
        if (isInText) return [];
        const label = control.matches("input[type=checkbox], input[type=radio]") && control.closest("label");
        const { width, height } = (label || control).getBoundingClientRect();
        if (width === 0 || height === 0 || (width >= size - 0.5 && height >= size - 0.5)) return [];
        const name = control.getAttribute("aria-label") ?? control.textContent ?? "";
        return [
          `${control.tagName.toLowerCase()}.${control.className} "${name.trim().slice(0, 40)}" ${Math.round(width)}×${Math.round(height)}`,
        ];
      });
    },
    { controls: CONTROLS, size, within },
  );
}

/** Returns pairs of controls that cover each other. */
export async function overlaps(page: Page): Promise<string[]> {
  return await page.evaluate((controls) => {
    /** What is left of an element's box after everything that scrolls or hides it. */
    const shownBox = (element: Element): DOMRect | undefined => {
      let { left, top, right, bottom } = element.getBoundingClientRect();
      for (let each = element.parentElement; each; each = each.parentElement) {
        const { overflowX, overflowY, position } = getComputedStyle(each);
        // What is stuck lies over what scrolls, on purpose.
        if (position === "sticky") return undefined;
        const box = each.getBoundingClientRect();
        if (overflowX !== "visible") [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
        if (overflowY !== "visible") [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
      }
      return right - left > 4 && bottom - top > 4
        ? new DOMRect(left, top, right - left, bottom - top)
        : undefined;
    };
    const top = document.querySelector("dialog[open]") ?? document.body;
    const shown = [...top.querySelectorAll<HTMLElement>(controls)].flatMap((element) => {
      const isShown = element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
      const box = isShown && !element.closest(".visually-hidden, .graph-canvas") && shownBox(element);
      return box ? [{ element, box }] : [];
    });
    const found: string[] = [];
    for (const [at, one] of shown.entries()) {
      for (const other of shown.slice(at + 1)) {
        if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
        const width = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
        const height = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
        if (width <= 3 || height <= 3) continue;
        const names = [one, other].map(
          ({ element }) =>
            `${element.tagName.toLowerCase()}.${element.className} "${element.textContent?.slice(0, 30)}"`,
        );
        found.push(names.join(" over "));
      }
    }
    return found.slice(0, 5);
  }, CONTROLS);
}

/** Presses Tab until the focus has been everywhere, and returns where it could not be seen. */
export async function unseenFocus(page: Page, max = 60): Promise<string[]> {
  const problems: string[] = [];
  const first = await focused(page);
  for (let presses = 0; presses < max; presses += 1) {
    await page.keyboard.press("Tab");
    let now = await focused(page);
    // A drawing moves to what has the focus, in the next frames.
    for (let frames = 0; frames < 20 && !now.isShown; frames += 1) {
      await page.waitForTimeout(20);
      now = await focused(page);
    }
    if (now.name === "body" || now.name === first.name) break;
    if (!now.isMarked) problems.push(`${now.name}: the focus is not marked`);
    if (!now.isShown) problems.push(`${now.name}: the focus is out of sight`);
  }
  return problems;
}

interface Focused {
  name: string;
  isMarked: boolean;
  isShown: boolean;
}

async function focused(page: Page): Promise<Focused> {
  return await page.evaluate(() => {
    const element = document.activeElement ?? document.body;
    if (element === document.body) return { name: "body", isMarked: true, isShown: true };
    const { tagName, className, id } = element;
    const label = element.getAttribute("aria-label") ?? element.textContent?.slice(0, 30);
    const all = [...document.querySelectorAll(tagName)];
    const name = `${tagName.toLowerCase()}#${id}.${className} "${label}" ${all.indexOf(element)}`;
    const active = element.getAttribute("aria-activedescendant");
    // The mark may be around a label, next to a box that is drawn otherwise, or around the active row of a list.
    const marks = [
      element,
      element.nextElementSibling,
      element.closest("label"),
      active && document.getElementById(active),
    ];
    const isMarked = marks.some((each) => {
      if (!(each instanceof Element)) return false;
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(each);
      return (outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2) || boxShadow.includes("inset");
    });
    // Nothing may cover it entirely (WCAG 2.4.11).
    const { left, top, width, height } = element.getBoundingClientRect();
    const isShown = [0.1, 0.5, 0.9].some((part) => {
      const hit = document.elementFromPoint(left + width / 2, top + height * part);
      if (!hit) return false;
      // A box that is drawn otherwise lies under its label.
      return (
        element.contains(hit) || hit === element.parentElement || hit.closest("label")?.contains(element)
      );
    });
    return { name, isMarked, isShown };
  });
}
