// SPDX-License-Identifier: Apache-2.0
/**
 * Draws rows of spans. What is narrower than a pixel is drawn as one column, and the next span is
 * found by search: a frame
 * costs as many steps as there are pixels, however many spans there are. Rectangles are pixels
 * (raster.ts); texts and
 * outlines come on top of them once all rows are drawn.
 */
import { fills, theme, type Palette } from "./colours";
import type { Spans } from "./data";
import { pixelRatio } from "./dom";
import { mix, packedHex, type Raster } from "./raster";
import { firstAfter, type Row, type Window } from "./rows";

export const FONT = "11px system-ui, sans-serif";
const ELLIPSIS = "…";
const INK = "#14181f"; // of labels, on every fill
const NOT_FOUND = 0.25; // how much is seen of what a search does not match
const LEAST_LABEL = 28; // pixels that a span has if it has a label

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

/**
 * "folder/file.py(12): name" as it is read in little room: the name first. What is searched and
 * described stays whole.
 */
export const shortLabel = (text: string): string => {
  const place = /^(?:.*\/)?([^/()]*)\((\d+)\): (.+)$/.exec(text);
  return place ? `${place[3]}  ${place[1]}:${place[2]}` : text;
};

/** A text on the picture, in CSS pixels. */
interface Label {
  text: string;
  x: number;
  y: number;
  found: boolean;
}

export interface Painter {
  context: CanvasRenderingContext2D;
  raster: Raster;
  spans: Spans;
  palette: Palette;
  texts: string[];
  window: Window;
  width: number; // in CSS pixels, as all that follow
  fills: Uint32Array;
  theme: ReturnType<typeof theme>;
  /** By number of a text: whether a search matches it; null: nothing is searched. */
  matches: Uint8Array | null;
  selected: number;
  used: Uint8Array; // colours that were drawn, by number
  labels: Label[];
  outlines: [x: number, y: number, width: number, height: number][];
  /** Spans of the same lane over which a row is pale: the thread waited. */
  veil: Row | null;
  /** Of a comparison: the colour of a span; else it is that of its name. */
  colourOf: ((id: number) => number) | null;
}

type Scene = Pick<
  Painter,
  "context" | "raster" | "spans" | "palette" | "texts" | "window" | "width"
>;

/** Begins a picture as high as the context's canvas, with lines of a grid at these moments. */
export function painter(scene: Scene, grid: number[]): Painter {
  const { context, raster, window, width } = scene;
  const colours = theme();
  const ratio = pixelRatio();
  const lines = grid.map((at) =>
    Math.round(((at - window.from) / (window.to - window.from)) * width * ratio),
  );
  raster.begin(
    context.canvas.width,
    context.canvas.height,
    packedHex(colours.back),
    lines,
    packedHex(colours.line),
  );
  context.font = FONT;
  context.textBaseline = "middle";
  const palette = fills();
  return {
    ...scene,
    fills: Uint32Array.from(palette, packedHex),
    theme: colours,
    matches: null,
    selected: -1,
    used: new Uint8Array(palette.length),
    labels: [],
    outlines: [],
    veil: null,
    colourOf: null,
  };
}

/** Where a span is, in pixels of the device, and where the next one may begin. */
function drawSpan(p: Painter, id: number, left: number, right: number, y: number, h: number): void {
  const ratio = pixelRatio();
  const name = p.spans.name[id];
  const found = p.matches === null || p.matches[name] === 1;
  const x = Math.max(0, left);
  const end = Math.min(p.raster.width, right);
  // A little less than its width: neighbours are told apart.
  p.raster.strip.fill(
    x,
    end - x > 2 * ratio ? end - 0.5 * ratio : end,
    colourOf(p, id),
    found ? 1 : NOT_FOUND,
  );
  const w = (end - x) / ratio;
  if (id === p.selected) p.outlines.push([x / ratio + 1, y + 1, Math.max(1, w - 2), h - 2]);
  if (w <= LEAST_LABEL) return;
  const text = fitText(p.context, shortLabel(p.texts[name]), w - 8);
  if (text) p.labels.push({ text, x: x / ratio + 4, y: y + h / 2 + 0.5, found });
}

function colourOf(p: Painter, id: number): number {
  if (p.colourOf) return p.colourOf(id);
  const number = p.palette.number(p.spans.kind[id], p.spans.name[id]);
  p.used[number] = 1;
  return p.fills[number];
}

export function drawRow(p: Painter, row: Row, y: number, height: number): void {
  const { start, end, name } = p.spans;
  const { from } = p.window;
  const ratio = pixelRatio();
  const { width } = p.raster;
  const scale = width / (p.window.to - from);
  const { pixels } = p.raster.clear();
  for (let i = firstAfter(p.spans, row, from); i < row.length; ) {
    const id = row[i];
    const left = (start[id] - from) * scale;
    if (left >= width) break;
    const right = (end[id] - from) * scale;
    if (right - left >= 1) {
      drawSpan(p, id, left, right, y, height - 1);
      i++;
      continue;
    }
    const x = Math.max(0, Math.floor(left));
    const found = p.matches === null || p.matches[name[id]] === 1;
    pixels[x] = found ? colourOf(p, id) : mix(pixels[x], colourOf(p, id), NOT_FOUND);
    i = Math.max(i + 1, firstAfter(p.spans, row, from + (x + 1) / scale, i));
  }
  if (p.veil) drawVeil(p, p.veil, scale);
  p.raster.put(Math.round(y * ratio), Math.round((y + height - 1) * ratio));
}

const VEIL = 0.6; // how much of the background covers what a thread did not run in

function drawVeil(p: Painter, row: Row, scale: number): void {
  const { start, end } = p.spans;
  const { from } = p.window;
  const { pixels } = p.raster.strip;
  const { ground } = p.raster;
  for (let i = firstAfter(p.spans, row, from), done = 0; i < row.length; ) {
    const left = Math.max(done, Math.floor((start[row[i]] - from) * scale));
    if (left >= pixels.length) break;
    const right = Math.min(
      pixels.length,
      Math.max(left + 1, Math.ceil((end[row[i]] - from) * scale)),
    );
    for (let x = left; x < right; x++) pixels[x] = mix(pixels[x], ground[x], VEIL);
    done = right;
    i = Math.max(i + 1, firstAfter(p.spans, row, from + right / scale, i));
  }
}

/** Puts the picture onto the canvas, and texts and outlines onto the picture. */
export function finish(p: Painter): void {
  const { context } = p;
  p.raster.show(context);
  context.fillStyle = INK;
  for (const found of [true, false]) {
    context.globalAlpha = found ? 1 : NOT_FOUND;
    for (const label of p.labels)
      if (label.found === found) context.fillText(label.text, label.x, label.y);
  }
  context.globalAlpha = 1;
  context.strokeStyle = p.theme.accent;
  context.lineWidth = 2;
  for (const outline of p.outlines) context.strokeRect(...outline);
}
