/** Which rows of a long list are drawn, if all rows have the same height. */

export interface RowWindow {
  first: number;
  /** The first that is not in it. */
  end: number;
}

/** The window moves by this many rows at a time, so a small movement draws nothing. */
const STEP = 4;
/** Rows that are drawn above and below, so that there is something to see before the next frame. */
const MARGIN = 2;

export interface ListPosition {
  /** How far the list is scrolled. */
  top: number;
  /** The height of what is visible of it. */
  height: number;
  /** The height of a row. */
  row: number;
  count: number;
}

/** Returns the rows that are visible at least in part. */
export function visibleRows({ top, height, row, count }: ListPosition): RowWindow {
  const first = Math.min(Math.max(0, Math.floor(top / row)), count);
  return { first, end: Math.max(first, Math.min(count, Math.ceil((top + height) / row))) };
}

/** Returns the rows to draw: the visible ones and some around them. */
export function drawnRows(position: ListPosition): RowWindow {
  const { first, end } = visibleRows(position);
  return {
    first: Math.max(0, Math.floor((first - MARGIN) / STEP) * STEP),
    end: Math.min(position.count, Math.ceil((end + MARGIN) / STEP) * STEP),
  };
}

/** Returns where to scroll so that a row is visible as a whole; the same place if it is. */
export function topShowing(place: number, { top, height, row }: ListPosition): number {
  if (place * row < top) return place * row;
  return Math.max(top, (place + 1) * row - height);
}
