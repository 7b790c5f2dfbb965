// SPDX-License-Identifier: Apache-2.0
/**
 * Rows of spans on a canvas: what timeline and flame graph are made of.
 *
 * A row is numbers of spans that do not overlap, by time. What is narrower than a pixel is drawn as one
 * column, and the next span is found by search: a frame costs as many steps as there are pixels, however
 * many spans there are.
 */
import { fills, theme, type Palette } from "./colours";
import type { Spans } from "./data";

export type Row = Uint32Array;
export const ROW_HEIGHT = 18;
export const FONT = "11px system-ui, sans-serif";

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

/** Puts spans that may overlap into as few rows as they take. `ids` are sorted by start in place. */
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

const ELLIPSIS = "…";

const widths = new Map<string, number>(); // of texts: measured once

function widthOf(context: CanvasRenderingContext2D, text: string): number {
  let width = widths.get(text);
  if (width === undefined) {
    width = context.measureText(text).width;
    if (widths.size > 20000) widths.clear();
    widths.set(text, width);
  }
  return width;
}

/** The text, or its beginning; empty where not even three letters fit. */
function fitText(context: CanvasRenderingContext2D, text: string, room: number): string {
  const width = widthOf(context, text);
  if (width <= room) return text;
  const letters = Math.floor(((room - 8) / width) * text.length);
  return letters >= 3 ? text.slice(0, letters) + ELLIPSIS : "";
}

export interface Painter {
  context: CanvasRenderingContext2D;
  spans: Spans;
  palette: Palette;
  texts: string[];
  window: Window;
  width: number;
  fills: string[];
  theme: ReturnType<typeof theme>;
  /** By number of a text: whether a search matches it; null: nothing is searched. */
  matches: Uint8Array | null;
  selected: number;
  used: Set<number>; // colours that were drawn
  /** Of a comparison: the colour of a span; else it is that of its name. */
  colourOf: ((id: number) => string) | null;
}

export function painter(context: CanvasRenderingContext2D, spans: Spans, palette: Palette, texts: string[], window: Window, width: number): Painter {
  context.font = FONT;
  context.textBaseline = "middle";
  return { context, spans, palette, texts, window, width, fills: fills(), theme: theme(), matches: null, selected: -1, used: new Set(), colourOf: null };
}

export function drawRow(p: Painter, row: Row, y: number, height: number): void {
  const { start, end, name } = p.spans;
  const { from } = p.window;
  const scale = p.width / (p.window.to - from);
  const context = p.context;
  const h = height - 1;
  let last = -1; // colour that is set
  let lastFound = true;
  for (let i = firstAfter(p.spans, row, from); i < row.length;) {
    const id = row[i];
    const left = (start[id] - from) * scale;
    if (left >= p.width) break;
    const right = (end[id] - from) * scale;
    const found = p.matches === null || p.matches[name[id]] === 1;
    const colour = p.colourOf ? -2 : p.palette.number(name[id]);
    if (p.colourOf) {
      context.globalAlpha = found ? 1 : 0.25;
      context.fillStyle = p.colourOf(id);
    } else if (colour !== last || found !== lastFound) {
      p.used.add(colour);
      context.globalAlpha = found ? 1 : 0.25;
      context.fillStyle = p.fills[colour];
      last = colour;
      lastFound = found;
    }
    if (right - left < 1) {
      const x = Math.floor(left);
      context.fillRect(x, y, 1, h);
      i = Math.max(i + 1, firstAfter(p.spans, row, from + (x + 1) / scale, i));
      continue;
    }
    const x = Math.max(0, left);
    const w = Math.min(p.width, right) - x;
    context.fillRect(x, y, w > 2 ? w - 0.5 : w, h);
    if (id === p.selected) {
      context.strokeStyle = p.theme.accent;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(1, w - 2), h - 2);
    }
    if (w > 28) {
      const label = fitText(context, p.texts[name[id]], w - 8);
      if (label) {
        context.fillStyle = "#14181f";
        context.fillText(label, x + 4, y + h / 2 + 0.5);
        last = -1;
      }
    }
    i++;
  }
  context.globalAlpha = 1;
}

/** The span of the row that is at a moment, give or take a pixel; -1: none. */
export function spanAt(spans: Spans, row: Row, at: number, slack: number): number {
  const i = firstAfter(spans, row, at - slack);
  if (i >= row.length) return -1;
  return spans.start[row[i]] <= at + slack ? row[i] : -1;
}

/** Which texts contain all words of what is searched, whatever the case; null: nothing is searched. */
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
