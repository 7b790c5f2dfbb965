// SPDX-License-Identifier: Apache-2.0
/** The timeline: lanes on a canvas, the time axis above, what is selected below. */
import { legend, type Palette } from "./colours";
import { LOST, UNFINISHED, type Cell, type Spans, type Table, type Trace } from "./data";
import { el, fitCanvas, oncePerFrame, searchBox, type Part } from "./dom";
import * as format from "./format";
import { place, type Lane } from "./lanes";
import { clampWindow, drawRow, firstAfter, matchTexts, painter, ROW_HEIGHT, spanAt, zoomAround, type Painter, type Row, type Window } from "./rows";
import { DataTable } from "./table";

const GUTTER = 210;
const RULER = 26;

interface Selection {
  lane: Lane;
  row: number;
  id: number; // of the lane's spans
}

/** Whole numbers of a unit that are some 110 pixels apart. */
function tickStep(nsPerPixel: number): number {
  const least = nsPerPixel * 110;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? 10 * power;
}

function tickText(ns: number, step: number): string {
  const [unit, name] = step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e6, "ms"] : step >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / (unit as number))));
  return `${(ns / (unit as number)).toFixed(decimals)} ${name}`;
}

export class Timeline implements Part {
  readonly element: HTMLElement;
  private canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "Timeline. W and S zoom, A and D move, arrows move the selection, slash searches.", "aria-describedby": "details" });
  private ruler = el("canvas.ruler", { "aria-hidden": "true" });
  private scroller = el("div.lanes");
  private content = el("div.content");
  private names = el("div.names");
  private details = el("section.details", { id: "details", "aria-live": "polite", "aria-label": "Selection" });
  private legend = el("div.legend", { "aria-label": "Colours" });
  private status = el("span.count", { role: "status" });
  private search: HTMLInputElement;
  private window: Window;
  private whole: Window;
  private selection: Selection | null = null;
  private area: Window | null = null;
  private matches: Uint8Array | null = null;
  private found: Selection[] = [];
  private foundAt = -1;
  private held = new Set<string>();
  private drag: { x: number; from: Window; pans: boolean; moved: boolean } | null = null;
  private legendText = "";
  private observer = new ResizeObserver(() => this.draw());
  readonly draw = oncePerFrame(() => this.paint());

  constructor(private trace: Trace, private lanes: Lane[], private palette: Palette) {
    const margin = (trace.to - trace.from) * 0.01;
    this.whole = { from: trace.from - margin, to: trace.to + margin };
    this.window = this.whole;
    this.search = searchBox("Search names", (text) => this.find(text), (back) => this.step(back ? -1 : 1));
    const button = (text: string, label: string, act: () => void): HTMLElement => el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const tools = el("div.tools", {}, this.search, button("↑", "Previous match", () => this.step(-1)), button("↓", "Next match", () => this.step(1)), button("+", "Zoom in (W)", () => this.zoom(0.5)), button("−", "Zoom out (S)", () => this.zoom(2)), button("All", "Show all (0)", () => this.show(this.whole)), el("span.spacer"), this.status);
    this.content.append(this.names, this.canvas);
    this.scroller.append(this.content);
    this.element = el("section.timeline", { "aria-label": "Timeline" }, tools, this.ruler, this.scroller, this.legend, this.details);
    this.makeNames();
    this.listen();
    this.describe();
  }

  shown(): void {
    this.observer.observe(this.scroller);
    this.draw();
  }

  left(): void {
    this.observer.disconnect();
    this.held.clear();
  }

  // ---- lanes' names

  private makeNames(): void {
    this.content.style.height = `${place(this.lanes)}px`;
    this.names.replaceChildren(...this.lanes.filter((lane) => lane.height > 0).map((lane) => {
      const name = el(`button.lane-name.${lane.kind}` as "button", { type: "button", "aria-expanded": String(!lane.folded), title: `${lane.title} ${lane.detail}`.trim(), onclick: () => {
        lane.folded = !lane.folded;
        this.makeNames();
        this.draw();
      } }, el("span.title", {}, lane.title), lane.detail ? el("span.detail", {}, lane.detail) : null);
      name.style.top = `${lane.y}px`;
      name.style.height = `${lane.height}px`;
      return name;
    }));
  }

  // ---- drawing

  private width(): number {
    return Math.max(100, this.scroller.clientWidth - GUTTER);
  }

  private paint(): void {
    const width = this.width();
    const height = Math.max(60, this.scroller.clientHeight);
    const context = fitCanvas(this.canvas, width, height);
    const p = painter(context, this.trace.ranges, this.palette, this.trace.head.texts, this.window, width);
    p.matches = this.matches;
    context.fillStyle = p.theme.back;
    context.fillRect(0, 0, width, height);
    this.paintGrid(p, height);
    const top = this.scroller.scrollTop;
    for (const lane of this.lanes) if (lane.height > 0 && lane.y + lane.height > top && lane.y < top + height) this.paintLane(p, lane, lane.y - top);
    this.paintArea(p, height);
    this.paintArrows(p, top);
    this.paintRuler(width);
    this.showLegend(p.used);
    const data = this.element.dataset;
    data.from = String(this.window.from);
    data.to = String(this.window.to);
    data.frames = String(Number(data.frames ?? 0) + 1);
  }

  private paintGrid(p: Painter, height: number): void {
    const step = tickStep((this.window.to - this.window.from) / p.width);
    p.context.fillStyle = p.theme.line;
    for (let at = Math.ceil(this.window.from / step) * step; at < this.window.to; at += step) p.context.fillRect(Math.round(this.x(at, p.width)), 0, 1, height);
  }

  private paintRuler(width: number): void {
    const context = fitCanvas(this.ruler, width, RULER);
    const colours = painter(context, this.trace.ranges, this.palette, [], this.window, width).theme;
    context.fillStyle = colours.back;
    context.fillRect(0, 0, width, RULER);
    const step = tickStep((this.window.to - this.window.from) / width);
    for (let at = Math.ceil(this.window.from / step) * step; at < this.window.to; at += step) {
      const x = Math.round(this.x(at, width));
      context.fillStyle = colours.line;
      context.fillRect(x, RULER - 6, 1, 6);
      context.fillStyle = colours.muted;
      context.fillText(tickText(at, step), x + 4, RULER / 2);
    }
  }

  private paintLane(p: Painter, lane: Lane, y: number): void {
    if (lane.kind === "process") {
      p.context.fillStyle = p.theme.lane;
      p.context.fillRect(0, y, p.width, lane.height);
      return;
    }
    if (lane.series) {
      this.paintSeries(p, lane, y);
      return;
    }
    p.spans = lane.spans;
    const rows = lane.folded ? lane.rows.slice(0, 1) : lane.rows;
    rows.forEach((row, i) => {
      const top = y + 3 + i * ROW_HEIGHT;
      if (top + ROW_HEIGHT < 0 || top > p.context.canvas.height) return;
      p.selected = this.selection?.lane === lane && this.selection.row === i ? this.selection.id : -1;
      drawRow(p, row, top, ROW_HEIGHT);
    });
    for (const mark of lane.marks) {
      const x = this.x(this.trace.marks.at[mark], p.width);
      if (x < 0 || x > p.width) continue;
      p.context.fillStyle = this.trace.marks.what[mark] === LOST ? "#c0392b" : p.theme.accent;
      p.context.fillRect(x, y + 1, 2, ROW_HEIGHT + 2);
    }
  }

  /** A counter: for each pixel the greatest and the least that it had. */
  private paintSeries(p: Painter, lane: Lane, y: number): void {
    const { at, value } = lane.series!;
    const top = y + 4;
    const height = lane.height - 8;
    const greatest = (lane.greatest ??= value.reduce((most, one) => (one > most ? one : most), 0));
    const scale = height / (greatest || 1);
    const context = p.context;
    context.fillStyle = p.theme.accent;
    context.globalAlpha = 0.35;
    let i = lowerBound(at, this.window.from) - 1;
    for (let x = 0; x < p.width; x++) {
      const until = this.window.from + ((x + 1) / p.width) * (this.window.to - this.window.from);
      let most = i >= 0 ? value[i] : 0;
      while (i + 1 < at.length && at[i + 1] < until) {
        i++;
        if (value[i] > most) most = value[i];
      }
      const h = Math.max(0, most * scale);
      if (i >= 0) context.fillRect(x, top + height - h, 1, h);
    }
    context.globalAlpha = 1;
    context.fillStyle = p.theme.muted;
    const text = lane.series!.isMemory ? format.bytes(greatest) : format.count(greatest);
    context.fillText(`max ${text}`, 4, top + 7);
  }

  private paintArea(p: Painter, height: number): void {
    if (!this.area) return;
    const from = this.x(this.area.from, p.width);
    const to = this.x(this.area.to, p.width);
    p.context.fillStyle = p.theme.accent;
    p.context.globalAlpha = 0.12;
    p.context.fillRect(from, 0, to - from, height);
    p.context.globalAlpha = 0.8;
    p.context.fillRect(from, 0, 1, height);
    p.context.fillRect(to, 0, 1, height);
    p.context.globalAlpha = 1;
  }

  /** From and to what the selected span is linked with. */
  private paintArrows(p: Painter, top: number): void {
    if (!this.selection || this.selection.lane.spans !== this.trace.ranges) return;
    const { ranges } = this.trace;
    p.context.strokeStyle = p.theme.accent;
    p.context.lineWidth = 1.5;
    for (const link of this.linked(this.selection.id)) {
      const [a, b] = [this.place(link.from), this.place(link.to)];
      if (!a || !b) continue;
      const middle = (s: Selection): number => s.lane.y + 3 + (s.lane.folded ? 0 : s.row) * ROW_HEIGHT + ROW_HEIGHT / 2 - top;
      const x0 = this.x(ranges.end[link.from], p.width);
      const x1 = this.x(ranges.start[link.to], p.width);
      p.context.beginPath();
      p.context.moveTo(x0, middle(a));
      p.context.bezierCurveTo(x0 + 40, middle(a), x1 - 40, middle(b), x1, middle(b));
      p.context.stroke();
      p.context.beginPath();
      p.context.arc(x1, middle(b), 3, 0, 7);
      p.context.fillStyle = p.theme.accent;
      p.context.fill();
    }
  }

  private showLegend(used: Set<number>): void {
    const entries = legend(used);
    const text = entries.map((entry) => entry.title + entry.colour).join();
    if (text === this.legendText) return;
    this.legendText = text;
    this.legend.replaceChildren(...entries.map((entry) => {
      const swatch = el("i", { "aria-hidden": "true" });
      swatch.style.background = entry.colour;
      return el("span", {}, swatch, entry.title);
    }));
  }

  private x(at: number, width: number): number {
    return ((at - this.window.from) / (this.window.to - this.window.from)) * width;
  }

  // ---- moving

  private timeAt(x: number): number {
    return this.window.from + (x / this.width()) * (this.window.to - this.window.from);
  }

  show(window: Window): void {
    this.window = clampWindow(window, this.whole);
    this.draw();
  }

  zoom(factor: number, at = (this.window.from + this.window.to) / 2): void {
    this.show(zoomAround(this.window, at, factor));
  }

  private pan(part: number): void {
    const by = part * (this.window.to - this.window.from);
    this.show({ from: this.window.from + by, to: this.window.to + by });
  }

  /** While a key is held, a little each frame. */
  private glide(last: number): void {
    requestAnimationFrame((now) => {
      if (this.held.size === 0) return;
      const seconds = Math.min(0.05, Math.max(0.004, (now - last) / 1000));
      if (this.held.has("w")) this.zoom(0.12 ** seconds, this.pointer);
      if (this.held.has("s")) this.zoom(8 ** seconds, this.pointer);
      if (this.held.has("a")) this.pan(-1.2 * seconds);
      if (this.held.has("d")) this.pan(1.2 * seconds);
      this.glide(now);
    });
  }

  private pointer: number | undefined; // the moment under the mouse

  key(event: KeyboardEvent): boolean {
    const key = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if ("wasd".includes(key) && key.length === 1) {
      if (this.held.size === 0) this.glide(performance.now() - 16);
      this.held.add(key);
      return true;
    }
    const acts: Record<string, () => void> = {
      "/": () => this.search.focus(), "0": () => this.show(this.whole), f: () => this.frame(), escape: () => this.select(null),
      arrowleft: () => this.move(0, -1), arrowright: () => this.move(0, 1), arrowup: () => this.move(-1, 0), arrowdown: () => this.move(1, 0),
      n: () => this.step(1), p: () => this.step(-1),
    };
    acts[key]?.();
    return key in acts;
  }

  private listen(): void {
    document.addEventListener("keyup", (event) => this.held.delete(event.key.toLowerCase()));
    window.addEventListener("blur", () => this.held.clear());
    this.scroller.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) this.zoom(1.0015 ** event.deltaY, this.timeAt(event.offsetX));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / this.width());
      else return;
      event.preventDefault();
    }, { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.drag = { x: event.offsetX, from: this.window, pans: event.shiftKey || event.button === 1, moved: false };
    });
    this.canvas.addEventListener("pointermove", (event) => this.dragTo(event));
    this.canvas.addEventListener("pointerup", (event) => {
      const drag = this.drag;
      this.drag = null;
      if (drag && !drag.moved) this.select(this.at(event.offsetX, event.offsetY));
      else if (drag && !drag.pans) this.describe();
    });
    this.canvas.addEventListener("dblclick", () => this.frame());
    this.canvas.addEventListener("pointerleave", () => (this.pointer = undefined));
  }

  private dragTo(event: PointerEvent): void {
    this.pointer = this.timeAt(event.offsetX);
    const { drag } = this;
    if (!drag) {
      const hit = this.at(event.offsetX, event.offsetY);
      this.canvas.title = hit ? `${this.nameOf(hit)} · ${format.timeNs(hit.lane.spans.end[hit.id] - hit.lane.spans.start[hit.id])}` : "";
      return;
    }
    drag.moved ||= Math.abs(event.offsetX - drag.x) > 3;
    if (!drag.moved) return;
    if (drag.pans) {
      const by = ((drag.x - event.offsetX) / this.width()) * (drag.from.to - drag.from.from);
      this.show({ from: drag.from.from + by, to: drag.from.to + by });
    } else {
      const [a, b] = [this.timeAt(drag.x), this.timeAt(event.offsetX)];
      this.area = { from: Math.min(a, b), to: Math.max(a, b) };
      this.selection = null;
      this.draw();
    }
  }

  // ---- selecting

  private nameOf(selection: Selection): string {
    return this.trace.head.texts[selection.lane.spans.name[selection.id]];
  }

  private at(x: number, y: number): Selection | null {
    const down = y + this.scroller.scrollTop;
    const lane = this.lanes.find((one) => one.height > 0 && down >= one.y && down < one.y + one.height);
    if (!lane) return null;
    const row = Math.floor((down - lane.y - 3) / ROW_HEIGHT);
    if (row < 0 || row >= lane.rows.length || (lane.folded && row > 0)) return null;
    const slack = (this.window.to - this.window.from) / this.width();
    const id = spanAt(lane.spans, lane.rows[row], this.timeAt(x), slack);
    return id < 0 ? null : { lane, row, id };
  }

  /** Where a range of the trace, or work of a GPU, is drawn. */
  private place(id: number): Selection | null {
    const { ranges } = this.trace;
    for (const lane of this.lanes) {
      if (lane.spans !== ranges || lane.rows.length === 0) continue;
      for (let row = 0; row < lane.rows.length; row++) {
        let at = firstAfter(ranges, lane.rows[row], ranges.start[id]);
        if (lane.rows[row][at] !== id && at > 0) at--; // of no length
        if (lane.rows[row][at] === id) return { lane, row, id };
      }
    }
    return null;
  }

  select(selection: Selection | null): void {
    this.selection = selection;
    this.area = null;
    this.describe();
    this.draw();
  }

  /** Shows the selection with some room at both sides. */
  private frame(): void {
    const { selection } = this;
    if (!selection) return;
    const { start, end } = selection.lane.spans;
    const length = Math.max(end[selection.id] - start[selection.id], 50);
    this.show({ from: start[selection.id] - length * 0.3, to: end[selection.id] + length * 0.3 });
  }

  private reveal(selection: Selection): void {
    const { start, end } = selection.lane.spans;
    const { id, lane } = selection;
    if (lane.folded || lane.height === 0) {
      lane.folded = false;
      for (const one of this.lanes) if (one.kind === "process" && one.process === lane.process) one.folded = false;
      this.makeNames();
    }
    const length = this.window.to - this.window.from;
    if (end[id] < this.window.from || start[id] > this.window.to || end[id] - start[id] < length / 2000) {
      const wanted = Math.min(length, Math.max((end[id] - start[id]) * 20, 1000));
      const middle = (start[id] + end[id]) / 2;
      this.show({ from: middle - wanted / 2, to: middle + wanted / 2 });
    }
    const y = lane.y + selection.row * ROW_HEIGHT;
    if (y < this.scroller.scrollTop || y > this.scroller.scrollTop + this.scroller.clientHeight - ROW_HEIGHT) this.scroller.scrollTop = Math.max(0, y - this.scroller.clientHeight / 2);
    this.select(selection);
  }

  private move(down: number, right: number): void {
    const { selection } = this;
    if (!selection) {
      const lane = this.lanes.find((one) => one.rows.length > 0);
      if (lane) this.reveal({ lane, row: 0, id: lane.rows[0][Math.min(lane.rows[0].length - 1, firstAfter(lane.spans, lane.rows[0], this.window.from))] });
      return;
    }
    const { lane } = selection;
    const row = selection.row + down;
    if (row < 0 || row >= lane.rows.length) return;
    const spans = lane.spans;
    const ids = lane.rows[row];
    const middle = down < 0 ? (spans.start[selection.id] + spans.end[selection.id]) / 2 : spans.start[selection.id];
    let at = firstAfter(spans, ids, middle);
    if (down === 0) {
      at = firstAfter(spans, ids, spans.start[selection.id]);
      if (ids[at] !== selection.id && at > 0) at--;
      at += right;
    }
    if (at >= 0 && at < ids.length) this.reveal({ lane, row, id: ids[at] });
  }

  // ---- searching

  find(text: string): void {
    this.matches = matchTexts(this.trace.head.texts, text);
    this.found = [];
    this.foundAt = -1;
    if (this.matches) {
      const places: Selection[] = [];
      for (const lane of this.lanes) lane.rows.forEach((ids, row) => {
        for (const id of ids) if (this.matches![lane.spans.name[id]] === 1) places.push({ lane, row, id });
      });
      this.found = places.sort((a, b) => a.lane.spans.start[a.id] - b.lane.spans.start[b.id]);
    }
    this.showStatus();
    this.draw();
  }

  /** Searches for exactly this name, and selects the first. */
  findName(name: string): void {
    this.search.value = name;
    this.find(name);
    this.step(1);
  }

  private step(by: number): void {
    if (this.found.length === 0) return;
    this.foundAt = (this.foundAt + by + this.found.length) % this.found.length;
    this.reveal(this.found[this.foundAt]);
    this.showStatus();
  }

  private showStatus(): void {
    this.status.textContent = !this.matches ? "" : this.found.length === 0 ? "No match" : `${this.foundAt >= 0 ? `${this.foundAt + 1} of ` : ""}${this.found.length} match${this.found.length === 1 ? "" : "es"}`;
  }

  // ---- details

  private linked(id: number): { from: number; to: number; title: string }[] {
    const { links, calls, ranges } = this.trace;
    const found: { from: number; to: number; title: string }[] = [];
    if (id >= ranges.ranges) {
      const process = this.trace.head.streams[ranges.thread[id]].process;
      for (let i = 0; i < calls.range.length; i++) if (calls.correlation[i] === ranges.correlation[id] && calls.process[i] === process && ranges.correlation[id] !== 0) found.push({ from: calls.range[i], to: id, title: "Launched by" });
      return found;
    }
    for (let i = 0; i < links.to.length; i++) {
      if (links.to[i] === id) {
        const from = this.rangeAt(links.fromThread[i], links.fromStart[i]);
        if (from >= 0) found.push({ from, to: id, title: "Forward" });
      } else if (links.fromThread[i] === ranges.thread[id] && links.fromStart[i] === ranges.start[id] && this.rangeAt(ranges.thread[id], ranges.start[id]) === id) found.push({ from: id, to: links.to[i], title: "Backward" });
    }
    for (let i = 0; i < calls.range.length; i++) if (calls.range[i] === id) for (let work = ranges.ranges; work < ranges.count; work++) if (ranges.correlation[work] === calls.correlation[i]) found.push({ from: id, to: work, title: "Launches" });
    return found;
  }

  private rangeAt(thread: number, start: number): number {
    for (const lane of this.lanes) {
      if (lane.thread !== thread) continue;
      for (const row of lane.rows) {
        const at = firstAfter(this.trace.ranges, row, start);
        if (at < row.length && this.trace.ranges.start[row[at]] === start) return row[at];
      }
    }
    return -1;
  }

  private describe(): void {
    const data = this.element.dataset;
    data.selected = this.selection ? this.nameOf(this.selection) : "";
    if (this.selection) this.details.replaceChildren(...this.describeSpan(this.selection));
    else if (this.area) this.details.replaceChildren(...this.describeArea(this.area));
    else this.details.replaceChildren(el("p.empty", {}, this.lanes.some((lane) => lane.rows.length > 0 || lane.series) ? "Click a span to see what it took, drag to add up a part of the time. W S zoom, A D move, / searches." : "The trace has nothing with a time of its own: no ranges, calls or counters."));
  }

  private describeSpan(selection: Selection): HTMLElement[] {
    const { lane, id } = selection;
    const { ranges, head } = this.trace;
    const start = lane.spans.start[id];
    const end = lane.spans.end[id];
    const inside = lane.spans === ranges || lane.kind === "steps" ? totals(this.lanes.filter((one) => (lane.kind === "steps" ? one.process === lane.process && one.kind === "spans" : one === lane)), start, end, lane.kind === "steps" ? -1 : selection.row, head.texts) : null;
    const children = inside?.direct ?? 0;
    const facts: [string, string][] = [["Duration", format.timeNs(end - start)]];
    if (lane.kind === "spans") facts.push(["Self", format.timeNs(end - start - children)]);
    facts.push(["Start", format.timeNs(start)], ["Where", lane.title]);
    if (lane.spans === ranges) {
      for (const [title, column] of [["Inputs", ranges.shapes], ["Module", ranges.module], ["Called from", ranges.stack]] as const) if (column[id]) facts.push([title, head.texts[column[id]]]);
      if (id < ranges.ranges && ranges.flags[id] & UNFINISHED) facts.push(["Unfinished", "its end is not in the trace"]);
    }
    const list = el("dl.facts", {}, ...facts.map(([title, text]) => el("div", {}, el("dt", {}, title), el("dd", { "data-fact": title }, text))));
    const links = lane.spans === ranges ? this.linked(id) : [];
    for (const link of links.slice(0, 12)) {
      const other = link.from === id ? link.to : link.from;
      list.append(el("div", {}, el("dt", {}, link.title), el("dd", {}, el("button.link", { type: "button", onclick: () => {
        const place = this.place(other);
        if (place) this.reveal(place);
      } }, head.texts[ranges.name[other]]))));
    }
    const left = el("div.facts-box", {}, el("h2", {}, this.nameOf(selection)), list);
    if (!inside || inside.table.rows.length === 0) return [left];
    return [left, el("div.totals-box", {}, el("h3", {}, "Inside it"), new DataTable(inside.table, { label: "Totals inside the selection" }).element)];
  }

  private describeArea(area: Window): HTMLElement[] {
    const inside = totals(this.lanes, area.from, area.to, -1, this.trace.head.texts);
    return [el("div.facts-box", {}, el("h2", {}, "Selected time"), el("dl.facts", {}, el("div", {}, el("dt", {}, "Length"), el("dd", { "data-fact": "Length" }, format.timeNs(area.to - area.from))))),
      el("div.totals-box", {}, el("h3", {}, "Ranges in it"), new DataTable(inside.table, { label: "Totals of the selected time" }).element)];
  }
}

function lowerBound(values: Float64Array, wanted: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What lies between two moments, by name: below a row of one lane, or in all rows. */
export function totals(lanes: Lane[], from: number, to: number, below: number, texts: string[]): { table: Table; direct: number } {
  const byName = new Map<number, [count: number, total: number, self: number]>();
  let direct = 0;
  const overlap = (spans: Spans, id: number): number => Math.min(to, spans.end[id]) - Math.max(from, spans.start[id]);
  const inRow = (spans: Spans, row: Row, act: (id: number) => void): void => {
    for (let i = firstAfter(spans, row, from); i < row.length && spans.start[row[i]] < to; i++) act(row[i]);
  };
  for (const lane of lanes) {
    lane.rows.forEach((row, r) => {
      if (r <= below) return;
      inRow(lane.spans, row, (id) => {
        const length = overlap(lane.spans, id);
        const entry = byName.get(lane.spans.name[id]) ?? [0, 0, 0];
        entry[0]++;
        entry[1] += length;
        entry[2] += length;
        byName.set(lane.spans.name[id], entry);
        if (r === below + 1) direct += length;
      });
      // What the row below takes is not the own time of what it lies in.
      const next = lane.rows[r + 1];
      if (next && lane.kind === "spans") subtract(lane.spans, row, next, from, to, byName);
    });
  }
  const rows: Cell[][] = Array.from(byName, ([name, [count, total, self]]): Cell[] => [texts[name], count, total, self, total / count]);
  rows.sort((a, b) => (b[3] as number) - (a[3] as number));
  return { direct, table: { columns: [{ key: "name", title: "Name", kind: "text" }, { key: "count", title: "Count", kind: "count" }, { key: "total_ns", title: "Total", kind: "time" }, { key: "self_ns", title: "Self", kind: "time" }, { key: "mean_ns", title: "Mean", kind: "time" }], rows, row_count: rows.length, microseconds: false } };
}

/** Takes the time of spans of the row below from what they lie in. */
function subtract(spans: Spans, row: Row, next: Row, from: number, to: number, byName: Map<number, [number, number, number]>): void {
  let parent = firstAfter(spans, row, from);
  for (let i = firstAfter(spans, next, from); i < next.length && spans.start[next[i]] < to; i++) {
    const id = next[i];
    while (parent < row.length && spans.end[row[parent]] < spans.end[id]) parent++;
    if (parent >= row.length || spans.start[row[parent]] > spans.start[id]) continue;
    const entry = byName.get(spans.name[row[parent]]);
    if (entry) entry[2] -= Math.min(to, spans.end[id]) - Math.max(from, spans.start[id]);
  }
}
