// SPDX-License-Identifier: Apache-2.0
/**
 * Rows of spans: what timeline and flame graph are made of. A row is numbers of spans that do not
 * overlap, by time.
 */
import type { Spans } from "./data";

export type Row = Uint32Array;
export const ROW_HEIGHT = 18;

/** The first place of the row whose span ends after `at`. */
export function firstAfter(spans: Spans, row: Row, at: number, from = 0): number {
  let low = from;
  let step = 1;
  // What is wanted is near: steps that double, then halves.
  while (low + step < row.length && spans.end[row[low + step]] <= at) {
    low += step;
    step *= 2;
  }
  let high = Math.min(row.length, low + step + 1);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (spans.end[row[middle]] <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first place whose value is not below what is wanted. */
export function lowerBound(values: Float64Array, wanted: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Puts spans that may overlap into as few rows as they take. `ids` are sorted by start in place.
 */
export function stackUp(spans: Spans, ids: Row): Row[] {
  ids.sort((a, b) => spans.start[a] - spans.start[b] || spans.end[b] - spans.end[a]);
  const rows: number[][] = [];
  const free: number[] = [];
  for (const id of ids) {
    let row = free.findIndex((end) => end <= spans.start[id]);
    if (row < 0) {
      row = rows.length;
      rows.push([]);
    }
    rows[row].push(id);
    free[row] = spans.end[id];
  }
  return rows.map((row) => Uint32Array.from(row));
}

/** A window of time on a canvas. */
export interface Window {
  from: number;
  to: number;
}

/** The span of the row that is at a moment, give or take a pixel; -1: none. */
export function spanAt(spans: Spans, row: Row, at: number, slack: number): number {
  const i = firstAfter(spans, row, at - slack);
  if (i >= row.length) return -1;
  return spans.start[row[i]] <= at + slack ? row[i] : -1;
}

/**
 * Which texts contain all words of what is searched, whatever the case; null: nothing is searched.
 */
export function matchTexts(texts: string[], search: string): Uint8Array | null {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  const matches = new Uint8Array(texts.length);
  texts.forEach((text, i) => {
    const low = text.toLowerCase();
    if (words.every((word) => low.includes(word))) matches[i] = 1;
  });
  return matches;
}

/** Keeps a window within what there is, and at least some nanoseconds long. */
export function clampWindow(window: Window, whole: Window): Window {
  const length = Math.max(20, Math.min(window.to - window.from, whole.to - whole.from));
  const from = Math.max(whole.from, Math.min(window.from, whole.to - length));
  return { from, to: from + length };
}

export function zoomAround(window: Window, at: number, factor: number): Window {
  return { from: at - (at - window.from) * factor, to: at + (window.to - at) * factor };
}
