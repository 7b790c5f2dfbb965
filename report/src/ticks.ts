// SPDX-License-Identifier: Apache-2.0
/** Moments that the ruler and the grid of the timeline mark, and the ruler. */
import { theme } from "./colours";
import { fitCanvas } from "./dom";
import { FONT } from "./rowpaint";
import type { Window } from "./rows";

const HEIGHT = 26;

/** Whole numbers of a unit that are some 110 pixels apart. */
function tickStep(nsPerPixel: number): number {
  const least = nsPerPixel * 110;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? 10 * power;
}

function tickText(ns: number, step: number): string {
  const [unit, name] =
    step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e6, "ms"] : step >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / (unit as number))));
  return `${(ns / (unit as number)).toFixed(decimals)} ${name}`;
}

export function ticks(window: Window, width: number): { at: number[]; step: number } {
  const step = tickStep((window.to - window.from) / width);
  const at: number[] = [];
  for (let tick = Math.ceil(window.from / step); tick * step < window.to; tick++)
    at.push(tick * step);
  return { at, step };
}

export function paintRuler(canvas: HTMLCanvasElement, window: Window, width: number): void {
  const context = fitCanvas(canvas, width, HEIGHT);
  const colours = theme();
  context.font = FONT;
  context.textBaseline = "middle";
  context.fillStyle = colours.back;
  context.fillRect(0, 0, width, HEIGHT);
  const { at, step } = ticks(window, width);
  const places: [left: number, right: number][] = [];
  for (const moment of at) {
    const x = Math.round(((moment - window.from) / (window.to - window.from)) * width);
    context.fillStyle = colours.line;
    context.fillRect(x, HEIGHT - 6, 1, 6);
    context.fillStyle = colours.muted;
    const text = tickText(moment, step);
    const room = context.measureText(text).width;
    // The last one is left of its line where it would be cut.
    const left = x + 8 + room <= width ? x + 4 : x - 4 - room;
    context.fillText(text, left, HEIGHT / 2);
    places.push([left, left + room]);
  }
  canvas.dataset.labels = JSON.stringify(places);
}
