// SPDX-License-Identifier: Apache-2.0
/**
 * Draws a window of the timeline: each time the whole of it, from nothing but what is in the view.
 */
import type { Palette } from "./colours";
import { LOST, type Series, type Trace } from "./data";
import { fitCanvas, pixelRatio } from "./dom";
import * as format from "./format";
import type { Lane } from "./lanes";
import { linked, placeOf, type Place } from "./links";
import { packedHex, type Raster } from "./raster";
import { drawRow, finish, painter, type Painter } from "./rowpaint";
import { lowerBound, ROW_HEIGHT, type Window } from "./rows";
import { ticks } from "./ticks";

const SERIES_PART = 0.35; // how much of the accent's colour a counter has
const BEHIND_PART = 0.15;
const LOST_COLOUR = "#c0392b";

export interface TimelineView {
  trace: Trace;
  lanes: Lane[];
  palette: Palette;
  window: Window;
  top: number; // how far the lanes are scrolled
  pinned: number; // height of the lanes that are not
  selection: Place | null;
  area: Window | null;
  matches: Uint8Array | null;
}

const xOf = (p: Painter, at: number): number =>
  ((at - p.window.from) / (p.window.to - p.window.from)) * p.width;

/** Where a lane is on the screen. */
export const topOf = (lane: Lane, scrolled: number): number =>
  lane.pinned ? lane.y : lane.y - scrolled;

/** Returns which colours it drew, by number, and the texts on spans. */
export function paintTimeline(
  view: TimelineView,
  canvas: HTMLCanvasElement,
  raster: Raster,
  width: number,
  height: number,
): { used: Uint8Array; labels: string[] } {
  const { trace, window, palette } = view;
  const context = fitCanvas(canvas, width, height);
  const p = painter(
    { context, raster, spans: trace.ranges, palette, texts: trace.head.texts, window, width },
    ticks(window, width).at,
  );
  p.matches = view.matches;
  const y = (lane: Lane): number => topOf(lane, view.top);
  const lanes = view.lanes.filter(
    (lane) =>
      lane.height > 0 && !lane.pinned && y(lane) + lane.height > view.pinned && y(lane) < height,
  );
  const pinned = view.lanes.filter((lane) => lane.height > 0 && lane.pinned && y(lane) < height);
  for (const lane of lanes) paintLane(p, view, lane, y(lane));
  if (pinned.length > 0) paintBehind(p, view.pinned);
  for (const lane of pinned) paintLane(p, view, lane, y(lane));
  finish(p);
  for (const lane of [...lanes, ...pinned]) paintOnTop(p, view, lane, y(lane));
  paintArea(p, view.area, height);
  paintArrows(p, view);
  return { used: p.used, labels: p.labels.map((label) => label.text) };
}

function paintLane(p: Painter, view: TimelineView, lane: Lane, y: number): void {
  if (lane.kind === "process") paintHead(p, lane, y);
  else if (lane.series) {
    if (lane.behind) paintSeries(p, lane, lane.behind, BEHIND_PART, y);
    paintSeries(p, lane, lane.series, SERIES_PART, y);
  } else {
    p.spans = lane.spans;
    const rows = lane.folded ? lane.rows.slice(0, 1) : lane.rows;
    rows.forEach((row, i) => {
      const top = y + 3 + i * ROW_HEIGHT;
      if (top + ROW_HEIGHT < 0 || top * pixelRatio() > p.raster.height) return;
      p.selected =
        view.selection?.lane === lane && view.selection.row === i ? view.selection.id : -1;
      p.veil = lane.samples && i > 0 ? lane.samples.waits : null;
      drawRow(p, row, top, ROW_HEIGHT);
    });
    p.veil = null;
  }
}

/** A process's name; of a folded one, with what its busiest thread did. */
function paintHead(p: Painter, lane: Lane, y: number): void {
  p.raster.strip.pixels.fill(packedHex(p.theme.lane));
  p.raster.put(Math.round(y * pixelRatio()), Math.round((y + lane.height) * pixelRatio()));
  const { main } = lane;
  if (!lane.folded || !main || main.rows.length === 0) return;
  p.spans = main.spans;
  p.selected = -1;
  drawRow(p, main.rows[0], y + 3, ROW_HEIGHT);
}

/** Takes away what was drawn where the pinned lanes are, and draws a line below them. */
function paintBehind(p: Painter, height: number): void {
  const bottom = Math.round(height * pixelRatio());
  p.raster.strip.pixels.fill(packedHex(p.theme.back));
  p.raster.put(0, bottom);
  p.raster.strip.pixels.fill(packedHex(p.theme.muted));
  p.raster.put(bottom, bottom + 1);
  p.labels = p.labels.filter((label) => label.y > height);
  p.outlines = p.outlines.filter(([, y]) => y > height);
}

const seriesTop = (y: number): number => y + 4;
const peaks = new WeakMap<Series, number>();

export function greatest(series: Series): number {
  let peak = peaks.get(series);
  if (peak === undefined)
    peaks.set(series, (peak = series.value.reduce((most, one) => (one > most ? one : most), 0)));
  return peak;
}

const greatestOf = (lane: Lane): number =>
  Math.max(greatest(lane.series!), lane.behind ? greatest(lane.behind) : 0);

/** A counter: for each pixel the greatest that it had. */
function paintSeries(p: Painter, lane: Lane, { at, value }: Series, part: number, y: number): void {
  const { from, to } = p.window;
  const { raster } = p;
  const height = (lane.height - 8) * pixelRatio();
  const bottom = Math.round(seriesTop(y) * pixelRatio() + height);
  const scale = height / (greatestOf(lane) || 1);
  const colour = packedHex(p.theme.accent);
  let i = lowerBound(at, from) - 1;
  for (let x = 0; x < raster.width; x++) {
    const until = from + ((x + 1) / raster.width) * (to - from);
    let most = i >= 0 ? value[i] : 0;
    while (i + 1 < at.length && at[i + 1] < until) {
      i++;
      if (value[i] > most) most = value[i];
    }
    if (i >= 0 && most > 0) raster.column(x, bottom - most * scale, bottom, colour, part);
  }
}

/** Marks, and texts of counters: over the picture. */
function paintOnTop(p: Painter, view: TimelineView, lane: Lane, y: number): void {
  const { context } = p;
  if (lane.series) {
    const text = lane.series.isBytes
      ? format.bytes(greatest(lane.series))
      : format.count(greatestOf(lane));
    const reserved = lane.behind ? `, reserved ${format.bytes(greatest(lane.behind))}` : "";
    context.fillStyle = p.theme.muted;
    context.fillText(`max ${text}${reserved}`, 4, seriesTop(y) + 7);
  }
  const { at, what } = view.trace.marks;
  for (const mark of lane.marks) {
    const x = xOf(p, at[mark]);
    if (x < 0 || x > p.width) continue;
    context.fillStyle = what[mark] === LOST ? LOST_COLOUR : p.theme.accent;
    context.fillRect(x, y + 1, 2, ROW_HEIGHT + 2);
  }
}

function paintArea(p: Painter, area: Window | null, height: number): void {
  if (!area) return;
  const { context } = p;
  const from = xOf(p, area.from);
  const to = xOf(p, area.to);
  context.fillStyle = p.theme.accent;
  context.globalAlpha = 0.12;
  context.fillRect(from, 0, to - from, height);
  context.globalAlpha = 0.8;
  context.fillRect(from, 0, 1, height);
  context.fillRect(to, 0, 1, height);
  context.globalAlpha = 1;
}

/** From and to what the selected span is linked with. */
function paintArrows(p: Painter, view: TimelineView): void {
  const { trace, selection, lanes } = view;
  const { ranges } = trace;
  if (!selection || selection.lane.spans !== ranges) return;
  const { context } = p;
  context.strokeStyle = p.theme.accent;
  context.fillStyle = p.theme.accent;
  context.lineWidth = 1.5;
  const middle = (place: Place): number =>
    topOf(place.lane, view.top) +
    3 +
    (place.lane.folded ? 0 : place.row) * ROW_HEIGHT +
    ROW_HEIGHT / 2;
  for (const link of linked(trace, lanes, selection.id)) {
    const [a, b] = [placeOf(trace, lanes, link.from), placeOf(trace, lanes, link.to)];
    if (!a || !b) continue;
    const x0 = xOf(p, link.together ? ranges.start[link.from] : ranges.end[link.from]);
    const x1 = xOf(p, ranges.start[link.to]);
    context.beginPath();
    context.moveTo(x0, middle(a));
    context.bezierCurveTo(x0 + 40, middle(a), x1 - 40, middle(b), x1, middle(b));
    context.stroke();
    context.beginPath();
    context.arc(x1, middle(b), 3, 0, 7);
    context.fill();
  }
}
