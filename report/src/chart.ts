// SPDX-License-Identifier: Apache-2.0
/** The frame of a chart of bytes over time: its lines, times and marks. */
import { theme } from "./colours";
import { fitCanvas } from "./dom";
import * as format from "./format";

export const LEFT = 74;
const BOTTOM = 24;
const TOP = 18;
const LABEL = 160; // a mark's text needs at most so much room

export interface Chart {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  y(bytes: number): number;
}

export function chartWidth(place: HTMLElement): number {
  return Math.max(200, place.clientWidth - 16);
}

/** Empty but for lines at quarters of the most. */
export function openChart(canvas: HTMLCanvasElement, place: HTMLElement, most: number): Chart {
  const width = chartWidth(place);
  const height = Math.max(120, place.clientHeight);
  const context = fitCanvas(canvas, width, height);
  const colours = theme();
  const room = height - BOTTOM - TOP;
  const y = (value: number): number => TOP + room - (value / most) * room;
  context.fillStyle = colours.back;
  context.fillRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    context.fillStyle = colours.line;
    context.fillRect(LEFT, Math.round(y(part * most)), width - LEFT, 1);
    context.fillStyle = colours.muted;
    context.textAlign = "right";
    context.fillText(format.bytes(Math.round(part * most)), LEFT - 8, y(part * most));
  }
  context.textAlign = "left";
  return { context, width, height, y };
}

/** Below the chart: five times, in nanoseconds. */
export function drawTimes({ context, width, height }: Chart, from: number, to: number): void {
  context.fillStyle = theme().muted;
  for (let part = 0; part <= 4; part++) {
    context.textAlign = part === 0 ? "left" : part === 4 ? "right" : "center";
    context.fillText(
      format.timeNs(from + (part / 4) * (to - from)),
      LEFT + (part / 4) * (width - LEFT),
      height - BOTTOM / 2,
    );
  }
  context.textAlign = "left";
}

/** A moment, with a text beside it that stays in the chart. */
export function drawMark(
  { context, width, y }: Chart,
  x: number,
  colour: string,
  text: string,
): void {
  const isFarRight = x > width - LABEL;
  context.fillStyle = colour;
  context.fillRect(x, TOP - 4, 1.5, y(0) - TOP + 4);
  context.textAlign = isFarRight ? "right" : "left";
  context.fillText(text, isFarRight ? x - 5 : x + 5, 8);
  context.textAlign = "left";
}
