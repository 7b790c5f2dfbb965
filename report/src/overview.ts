// SPDX-License-Identifier: Apache-2.0
/**
 * A strip over all time: how many threads run, how busy the GPUs are, how much memory is in use. The visible part is
 * marked; it is moved by dragging, and chosen anew by dragging beside it.
 */
import { theme } from "./colours";
import { el, fitCanvas, oncePerFrame } from "./dom";
import type { Lane } from "./lanes";
import type { Window } from "./rows";
import { greatest } from "./timelinepaint";

const HEIGHT = 40;
const PLACES = 1000; // of the strip: each is a part of the time
const EDGE = 5; // pixels beside an edge that take hold of it

/** ns of spans in each part of the time. */
function addSpans(lane: Lane, rows: Lane["rows"], whole: Window, sums: Float64Array): void {
  const length = (whole.to - whole.from) / PLACES;
  const { start, end } = lane.samples?.spans ?? lane.spans;
  const placeAt = (at: number): number =>
    Math.max(0, Math.min(PLACES - 1, Math.floor((at - whole.from) / length)));
  const waits = lane.samples ? new Set(lane.samples.waits) : null;
  for (const row of rows)
    for (const id of row) {
      if (waits?.has(id)) continue;
      const first = placeAt(start[id]);
      const last = placeAt(end[id]);
      for (let place = first; place <= last; place++) {
        const begin = Math.max(start[id], place === 0 ? -Infinity : whole.from + place * length);
        const until = Math.min(
          end[id],
          place === PLACES - 1 ? Infinity : whole.from + (place + 1) * length,
        );
        sums[place] += Math.max(0, until - begin);
      }
    }
}

/** The greatest value in each part of the time, of all series. */
function addSeries(lane: Lane, whole: Window, most: Float64Array): void {
  const { at, value } = lane.series!;
  const length = (whole.to - whole.from) / PLACES;
  const mine = new Float64Array(PLACES);
  for (let i = 0; i < at.length; i++) {
    const from = Math.max(0, Math.floor((at[i] - whole.from) / length));
    const to =
      i + 1 < at.length
        ? Math.min(PLACES - 1, Math.floor((at[i + 1] - whole.from) / length))
        : PLACES - 1;
    for (let place = from; place <= to; place++) mine[place] = Math.max(mine[place], value[i]);
  }
  for (let place = 0; place < PLACES; place++) most[place] += mine[place];
}

interface Band {
  title: string;
  values: Float64Array;
  most: number; // what the full height stands for
}

export class Overview {
  readonly element = el("div.overview", { "aria-hidden": "true" });
  private canvas = el("canvas", { "aria-hidden": "true" });
  private names = el("div.overview-names");
  private bands: Band[] | null = null;
  private window: Window;
  private drag: { kind: "move" | "new" | "from" | "to"; at: number; window: Window } | null = null;
  readonly draw = oncePerFrame(() => this.paint());

  constructor(
    private lanes: Lane[],
    private whole: Window,
    private show: (window: Window) => void,
  ) {
    this.window = whole;
    this.element.append(this.names, this.canvas);
    this.canvas.addEventListener("pointerdown", (event) => this.begin(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", () => (this.drag = null));
    this.canvas.addEventListener("dblclick", () => this.show(this.whole));
  }

  /** The part of the time that the timeline shows. */
  mark(window: Window): void {
    this.window = window;
    this.draw();
  }

  /** Each span is looked at once; the lanes are on the screen by then. */
  private makeBands(): Band[] {
    const { lanes, whole } = this;
    const length = (whole.to - whole.from) / PLACES;
    const threads = lanes.filter(
      (lane) => lane.kind === "spans" && lane.thread >= 0 && !lane.overlaps && lane.rows.length > 0,
    );
    // A thread with ranges and samples counts once.
    const once = threads.filter(
      (lane) =>
        !threads.some((other) => other !== lane && lane.samples && other.thread === lane.thread),
    );
    const streams = lanes.filter((lane) => lane.kind === "spans" && lane.thread < 0);
    const memory = lanes.filter((lane) => lane.series?.isBytes && greatest(lane.series) > 0);
    const bands: Band[] = [];
    const band = (title: string, values: Float64Array, least = 0): void => {
      bands.push({ title, values, most: Math.max(least, ...values) });
    };
    if (once.length > 0) {
      const sums = new Float64Array(PLACES);
      for (const lane of once) addSpans(lane, lane.rows.slice(0, 1), whole, sums);
      this.element.dataset.activity = String(Math.round(sums.reduce((a, b) => a + b, 0)));
      band(
        once.length > 1 ? "Threads that run" : "Activity",
        sums.map((ns) => ns / length),
        1,
      );
    }
    if (streams.length > 0) {
      const sums = new Float64Array(PLACES);
      for (const lane of streams) addSpans(lane, lane.rows, whole, sums);
      this.element.dataset.gpu = String(Math.round(sums.reduce((a, b) => a + b, 0)));
      band(
        "GPU busy",
        sums.map((ns) => Math.min(1, ns / length)),
        1,
      );
    }
    if (memory.length > 0) {
      const most = new Float64Array(PLACES);
      for (const lane of memory) addSeries(lane, whole, most);
      band("Memory", most);
    }
    this.names.replaceChildren(...bands.map((one) => el("span", {}, one.title)));
    this.element.hidden = bands.length === 0;
    return bands;
  }

  private paint(): void {
    this.bands ??= this.makeBands();
    const width = Math.max(40, this.element.clientWidth - this.names.offsetWidth);
    const context = fitCanvas(this.canvas, width, HEIGHT);
    const colours = theme();
    context.fillStyle = colours.back;
    context.fillRect(0, 0, width, HEIGHT);
    const height = HEIGHT / this.bands.length;
    this.bands.forEach((band, i) => {
      context.fillStyle = colours.accent;
      context.globalAlpha = 0.55;
      const bottom = (i + 1) * height;
      context.beginPath();
      context.moveTo(0, bottom);
      band.values.forEach((value, place) => {
        const y = bottom - (band.most > 0 ? (value / band.most) * (height - 2) : 0);
        context.lineTo((place / PLACES) * width, y);
        context.lineTo(((place + 1) / PLACES) * width, y);
      });
      context.lineTo(width, bottom);
      context.fill();
      context.globalAlpha = 1;
    });
    const [from, to] = [this.x(this.window.from, width), this.x(this.window.to, width)];
    context.fillStyle = colours.muted;
    context.globalAlpha = 0.28;
    context.fillRect(0, 0, from, HEIGHT);
    context.fillRect(to, 0, width - to, HEIGHT);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.strokeRect(from + 0.5, 0.5, Math.max(2, to - from - 1), HEIGHT - 1);
    this.element.dataset.from = String(Math.round(from));
    this.element.dataset.to = String(Math.round(to));
  }

  private x(at: number, width: number): number {
    return ((at - this.whole.from) / (this.whole.to - this.whole.from)) * width;
  }

  private timeAt(x: number): number {
    return (
      this.whole.from +
      Math.max(0, Math.min(1, x / this.canvas.clientWidth)) * (this.whole.to - this.whole.from)
    );
  }

  private begin(event: PointerEvent): void {
    const width = this.canvas.clientWidth;
    const [from, to] = [this.x(this.window.from, width), this.x(this.window.to, width)];
    const x = event.offsetX;
    const isAll = from <= 1 && to >= width - 1;
    const kind =
      !isAll && Math.abs(x - from) <= EDGE
        ? "from"
        : !isAll && Math.abs(x - to) <= EDGE
          ? "to"
          : !isAll && x > from && x < to
            ? "move"
            : "new";
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { kind, at: this.timeAt(x), window: this.window };
  }

  private move(event: PointerEvent): void {
    const { drag } = this;
    if (!drag) return;
    const at = this.timeAt(event.offsetX);
    const { from, to } = drag.window;
    const wanted: Record<typeof drag.kind, Window> = {
      move: { from: from + at - drag.at, to: to + at - drag.at },
      new: { from: Math.min(at, drag.at), to: Math.max(at, drag.at) },
      from: { from: Math.min(at, to), to: Math.max(at, to) },
      to: { from: Math.min(at, from), to: Math.max(at, from) },
    };
    if (wanted[drag.kind].to > wanted[drag.kind].from) this.show(wanted[drag.kind]);
  }
}
