/**
 * Figures that a test measured. `cargo xtask studio browser --long` says in which file they belong: `results/studio.json`, with the
 * commit that they were measured at.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";

type Figures = Record<string, number>;

interface Row {
  name: string;
  commit: string;
  dirty: boolean;
  figures: Figures;
}

/** Notes what a file of tests measured, next to what it noted before. Numbers are rounded to hundredths. */
export function note(name: string, figures: Figures): void {
  const file = process.env.FIGURES;
  if (!file) return;
  const commit = process.env.COMMIT ?? "";
  const dirty = process.env.DIRTY !== "false";
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { rows: Row[] }).rows : [];
  const own = before.find((row) => row.name === name && row.commit === commit && row.dirty === dirty);
  const rounded = Object.entries(figures).map(
    ([key, value]) => [key, Math.round(value * 100) / 100] as const,
  );
  const all = { ...own?.figures, ...Object.fromEntries(rounded) };
  const sorted = Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
  const row: Row = { name, commit, dirty, figures: sorted };
  const rows = [...before.filter((each) => each.name !== name), row];
  rows.sort((a, b) => (a.name < b.name ? -1 : 1));
  writeFileSync(file, `${JSON.stringify({ rows }, null, 2)}\n`);
}
