// SPDX-License-Identifier: Apache-2.0
/** The timeline: lanes on a canvas, the time axis above, what is selected below. */
import { legend, type Palette } from "./colours";
import type { Trace } from "./data";
import { describeArea, describeSpan } from "./details";
import { choice, el, oncePerFrame, searchBox, type Part } from "./dom";
import * as format from "./format";
import type { Lane } from "./lanes";
import type { Place } from "./links";
import { matchesLink } from "./matches";
import { Overview } from "./overview";
import { Raster } from "./raster";
import {
  clampWindow,
  firstAfter,
  matchTexts,
  ROW_HEIGHT,
  spanAt,
  zoomAround,
  type Window,
} from "./rows";
import { paintRuler } from "./ticks";
import { readWindow, type Selection } from "./selection";
import { greatest, paintTimeline, topOf } from "./timelinepaint";
import { arrange, type Arranged, type Order, type Tracks } from "./tracks";

const FEW_LANES = 3; // with more there is a way to find some

/** What a counter's lane shows, in plain numbers. */
function seriesFacts({ series, behind }: Lane): string | undefined {
  return series
    ? JSON.stringify({
        unit: series.isBytes ? "bytes" : "count",
        most: greatest(series),
        ...(behind ? { reserved: greatest(behind) } : {}),
      })
    : undefined;
}

export class Timeline implements Part {
  readonly element: HTMLElement;
  private canvas = el("canvas", {
    tabindex: 0,
    role: "application",
    "aria-label":
      "Timeline. W and S zoom, A and D move, arrows move the selection, slash searches.",
    "aria-describedby": "details",
  });
  private ruler = el("canvas.ruler", { "aria-hidden": "true" });
  private scroller = el("div.lanes");
  private content = el("div.content");
  private names = el("div.names");
  private pins = el("div.pins"); // names of pinned lanes: they stay where they are
  private gutter = 210; // pixels that the names take
  private hidden = el("button", { type: "button", hidden: true, onclick: () => this.showHidden() });
  private tracks: Tracks = { order: "recorded", filter: "" };
  private laneFilter: HTMLInputElement;
  private laneOrder: HTMLLabelElement;
  private arranged!: Arranged;
  private overview: Overview;
  private details = el("section.details", {
    id: "details",
    "aria-live": "polite",
    "aria-label": "Selection",
  });
  private legend = el("div.legend", { "aria-label": "Colours" });
  private status = el("span.count", { role: "status" });
  private all = el("span"); // a link to the table of matches
  private search: HTMLInputElement;
  private window: Window;
  private whole: Window;
  private selection: Place | null = null;
  private matches: Uint8Array | null = null;
  private found: Place[] = [];
  private foundAt = -1;
  private held = new Set<string>();
  private drag: { x: number; from: Window; pans: boolean; moved: boolean } | null = null;
  private legendText = "";
  private raster = new Raster();
  private observer = new ResizeObserver(() => this.draw());
  readonly draw = oncePerFrame(() => this.paint());

  constructor(
    private trace: Trace,
    private lanes: Lane[],
    private palette: Palette,
    private part: Selection,
    private changed: () => void,
  ) {
    const margin = (trace.to - trace.from) * 0.01;
    this.whole = { from: trace.from - margin, to: trace.to + margin };
    this.window = this.whole;
    this.search = searchBox(
      "Search names",
      (text) => this.find(text),
      (back) => this.step(back ? -1 : 1),
    );
    this.overview = new Overview(lanes, this.whole, (window) => this.show(window));
    this.laneFilter = searchBox("Filter lanes", (filter) => this.track({ filter }));
    this.laneFilter.classList.add("short");
    this.laneOrder = choice(
      "Lanes",
      [
        ["recorded", "as recorded"],
        ["time", "busiest first"],
        ["name", "by name"],
      ],
      this.tracks.order,
      (order) => this.track({ order: order as Order }),
    );
    const button = (text: string, label: string, act: () => void): HTMLElement =>
      el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const tools = el(
      "div.tools",
      {},
      this.search,
      button("↑", "Previous match", () => this.step(-1)),
      button("↓", "Next match", () => this.step(1)),
      button("+", "Zoom in (W)", () => this.zoom(0.5)),
      button("−", "Zoom out (S)", () => this.zoom(2)),
      button("All", "Show all (0)", () => this.show(this.whole)),
      ...(lanes.length > FEW_LANES ? [this.laneFilter, this.laneOrder] : []),
      this.hidden,
      el("span.spacer"),
      this.status,
      this.all,
    );
    this.content.append(this.pins, this.names, this.canvas);
    this.scroller.append(this.content);
    this.element = el(
      "section.timeline",
      { "aria-label": "Timeline" },
      el("h1.unseen", {}, "Timeline"),
      tools,
      this.overview.element,
      this.ruler,
      this.scroller,
      this.legend,
      this.details,
    );
    this.makeNames();
    this.listen();
    this.describe();
  }

  shown(): void {
    this.observer.observe(this.scroller);
    this.describe();
    this.draw();
  }

  /** The window, the span that is selected (lane, row, number), what is searched. */
  toAddress(to: URLSearchParams): void {
    const { window, whole, selection } = this;
    if (window.from !== whole.from || window.to !== whole.to)
      to.set("at", `${Math.round(window.from)}-${Math.round(window.to)}`);
    if (selection)
      to.set("span", [this.lanes.indexOf(selection.lane), selection.row, selection.id].join("."));
    if (this.search.value) to.set("search", this.search.value);
    const numbers = (wanted: (lane: Lane) => boolean): string =>
      this.lanes.flatMap((lane, i) => (wanted(lane) ? [i] : [])).join(".");
    for (const [key, value] of [
      ["lanes", this.tracks.filter],
      ["order", this.tracks.order === "recorded" ? "" : this.tracks.order],
      ["pinned", numbers((lane) => lane.pinned)],
      ["hidden", numbers((lane) => lane.hidden)],
    ])
      if (value) to.set(key, value);
  }

  fromAddress(from: URLSearchParams): void {
    const window = readWindow(from.get("at"));
    const [number, row, id] = (from.get("span") ?? "").split(".").map(Number);
    const lane = this.lanes[number];
    const search = from.get("search");
    if (window) this.window = clampWindow(window, this.whole);
    if (lane?.rows[row]?.includes(id)) this.selection = { lane, row, id };
    if (search !== null && search !== this.search.value) {
      this.search.value = search;
      this.find(search);
    }
    const order = from.get("order");
    if (order === "time" || order === "name") this.tracks.order = order;
    this.tracks.filter = from.get("lanes") ?? this.tracks.filter;
    this.laneFilter.value = this.tracks.filter;
    this.laneOrder.querySelector("select")!.value = this.tracks.order;
    for (const key of ["pinned", "hidden"] as const)
      for (const one of (from.get(key) ?? "").split(".").filter(Boolean)) {
        const named = this.lanes[Number(one)];
        if (named) named[key] = true;
      }
    this.makeNames();
  }

  left(): void {
    this.observer.disconnect();
    this.held.clear();
  }

  // ---- lanes: their names, and which are shown

  private track(tracks: Partial<Tracks>): void {
    Object.assign(this.tracks, tracks);
    this.laneChanged();
  }

  private laneChanged(): void {
    this.makeNames();
    this.draw();
    this.changed();
  }

  private showHidden(): void {
    for (const lane of this.lanes) lane.hidden = false;
    this.laneChanged();
  }

  private makeNames(): void {
    this.arranged = arrange(this.lanes, this.tracks);
    const { shown, height } = this.arranged;
    const hidden = this.lanes.filter((lane) => lane.hidden).length;
    this.content.style.height = `${height}px`;
    this.hidden.hidden = hidden === 0;
    this.hidden.textContent = `Show ${hidden} hidden lane${hidden === 1 ? "" : "s"}`;
    this.pins.replaceChildren(...shown.filter((lane) => lane.pinned).map((one) => this.name(one)));
    this.names.replaceChildren(
      ...shown.filter((lane) => !lane.pinned).map((one) => this.name(one)),
    );
    this.element.dataset.lanes = shown.map((lane) => lane.title).join("\n");
  }

  private name(lane: Lane): HTMLElement {
    const owner =
      lane.pinned && lane.kind !== "process" && this.trace.head.processes.length > 1
        ? `${this.trace.head.processes[lane.process].pid}: `
        : "";
    const name = el(
      `button.lane-name.${lane.kind}` as "button",
      {
        type: "button",
        "aria-expanded": String(!lane.folded),
        "data-series": seriesFacts(lane),
        "data-samples": lane.samples
          ? JSON.stringify({
              tid: this.trace.head.threads[lane.thread].tid,
              ...lane.samples.sums,
            })
          : undefined,
        title: `${lane.title} ${lane.detail}`.trim(),
        onclick: () => {
          lane.folded = !lane.folded;
          this.makeNames();
          this.draw();
        },
      },
      el("span.title", {}, owner + lane.title),
      lane.detail ? el("span.detail", {}, lane.detail) : null,
    );
    const act = (
      sign: string,
      label: string,
      title: string,
      pressed: boolean | null,
      onclick: () => void,
    ): HTMLElement =>
      el(
        "button.lane-act",
        {
          type: "button",
          ...(pressed === null ? {} : { "aria-pressed": String(pressed) }),
          "aria-label": `${label} ${lane.title}`,
          title,
          onclick,
        },
        sign,
      );
    const row = el(
      "div.lane-row",
      {},
      name,
      el(
        "div.lane-acts",
        {},
        act("✕", "Hide", "Hide this lane", null, () => {
          lane.hidden = true;
          lane.pinned = false;
          this.laneChanged();
        }),
        lane.kind === "process"
          ? null
          : act("⚲", "Pin", "Keep this lane on top", lane.pinned, () => {
              lane.pinned = !lane.pinned;
              this.laneChanged();
            }),
        act(
          "◎",
          "Select",
          "Only this lane: flame graph, tables, totals, memory",
          this.part.lane === lane,
          () => this.choose(this.part.area, this.part.lane === lane ? null : lane),
        ),
      ),
    );
    row.style.top = `${lane.y}px`;
    row.style.height = `${lane.height}px`;
    return row;
  }

  // ---- drawing

  private width(): number {
    return Math.max(100, this.scroller.clientWidth - this.gutter);
  }

  private paint(): void {
    this.gutter = this.names.offsetWidth || this.gutter;
    const width = this.width();
    const height = Math.max(60, this.scroller.clientHeight);
    const { trace, lanes, palette, window, selection, matches } = this;
    const { area } = this.part;
    const { used, labels } = paintTimeline(
      {
        trace,
        lanes,
        palette,
        window,
        selection,
        area,
        matches,
        top: this.scroller.scrollTop,
        pinned: this.arranged.pinned,
      },
      this.canvas,
      this.raster,
      width,
      height,
    );
    paintRuler(this.ruler, window, width);
    this.overview.mark(window);
    this.showLegend(used);
    const data = this.element.dataset;
    data.from = String(this.window.from);
    data.to = String(this.window.to);
    data.labels = labels.join("\n");
    data.frames = String(Number(data.frames ?? 0) + 1);
  }

  private showLegend(used: Uint8Array): void {
    const entries = legend(used);
    const text = entries.map((entry) => entry.title + entry.colour).join();
    if (text === this.legendText) return;
    this.legendText = text;
    this.legend.replaceChildren(
      ...entries.map((entry) => {
        const swatch = el("i", { "aria-hidden": "true" });
        swatch.style.background = entry.colour;
        return el("span", {}, swatch, entry.title);
      }),
    );
  }

  // ---- moving

  private timeAt(x: number): number {
    return this.window.from + (x / this.width()) * (this.window.to - this.window.from);
  }

  show(window: Window): void {
    this.window = clampWindow(window, this.whole);
    this.draw();
    this.changed();
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
      "/": () => this.search.focus(),
      "0": () => this.show(this.whole),
      f: () => this.frame(),
      escape: () => this.select(null),
      arrowleft: () => this.move(0, -1),
      arrowright: () => this.move(0, 1),
      arrowup: () => this.move(-1, 0),
      arrowdown: () => this.move(1, 0),
      n: () => this.step(1),
      p: () => this.step(-1),
    };
    acts[key]?.();
    return key in acts;
  }

  private listen(): void {
    document.addEventListener("keyup", (event) => this.held.delete(event.key.toLowerCase()));
    window.addEventListener("blur", () => this.held.clear());
    this.scroller.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        if (event.ctrlKey || event.metaKey)
          this.zoom(1.0015 ** event.deltaY, this.timeAt(event.offsetX));
        else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
          this.pan((event.deltaX || event.deltaY) / this.width());
        else return;
        event.preventDefault();
      },
      { passive: false },
    );
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.drag = {
        x: event.offsetX,
        from: this.window,
        pans: event.shiftKey || event.button === 1,
        moved: false,
      };
    });
    this.canvas.addEventListener("pointermove", (event) => this.dragTo(event));
    this.canvas.addEventListener("pointerup", (event) => {
      const drag = this.drag;
      this.drag = null;
      if (drag && !drag.moved) this.select(this.at(event.offsetX, event.offsetY));
      else if (drag && !drag.pans) this.choose(this.part.area, this.part.lane);
    });
    this.canvas.addEventListener("dblclick", () => this.frame());
    this.canvas.addEventListener("pointerleave", () => (this.pointer = undefined));
  }

  private dragTo(event: PointerEvent): void {
    this.pointer = this.timeAt(event.offsetX);
    const { drag } = this;
    if (!drag) {
      const hit = this.at(event.offsetX, event.offsetY);
      this.canvas.title = hit
        ? `${this.nameOf(hit)} · ${format.timeNs(hit.lane.spans.end[hit.id] - hit.lane.spans.start[hit.id])}`
        : "";
      return;
    }
    drag.moved ||= Math.abs(event.offsetX - drag.x) > 3;
    if (!drag.moved) return;
    if (drag.pans) {
      const by = ((drag.x - event.offsetX) / this.width()) * (drag.from.to - drag.from.from);
      this.show({ from: drag.from.from + by, to: drag.from.to + by });
    } else {
      const [a, b] = [this.timeAt(drag.x), this.timeAt(event.offsetX)];
      this.part.area = { from: Math.min(a, b), to: Math.max(a, b) };
      this.selection = null;
      this.draw();
    }
  }

  // ---- selecting

  private nameOf(selection: Place): string {
    return this.trace.head.texts[selection.lane.spans.name[selection.id]];
  }

  private at(x: number, y: number): Place | null {
    const isPinned = y < this.arranged.pinned;
    const lane = this.arranged.shown.find((one) => {
      const top = topOf(one, this.scroller.scrollTop);
      return one.pinned === isPinned && y >= top && y < top + one.height;
    });
    if (!lane) return null;
    const row = Math.floor((y - topOf(lane, this.scroller.scrollTop) - 3) / ROW_HEIGHT);
    if (row < 0 || row >= lane.rows.length || (lane.folded && row > 0)) return null;
    const slack = (this.window.to - this.window.from) / this.width();
    const id = spanAt(lane.spans, lane.rows[row], this.timeAt(x), slack);
    return id < 0 ? null : { lane, row, id };
  }

  select(selection: Place | null): void {
    this.selection = selection;
    const { lane } = this.part;
    this.part.set(null, selection ? lane : null);
    if (lane && !selection) this.makeNames();
    this.describe();
    this.draw();
    this.changed();
  }

  /** A part of the time, a lane, or both: what the other parts of the page are of from now on. */
  private choose(area: Window | null, lane: Lane | null): void {
    this.selection = null;
    this.part.set(area, lane);
    this.makeNames();
    this.describe();
    this.draw();
    this.changed();
  }

  /** Shows the selection with some room at both sides. */
  private frame(): void {
    const { selection } = this;
    if (!selection && this.part.area) this.show(this.part.area);
    if (!selection) return;
    const { start, end } = selection.lane.spans;
    const length = Math.max(end[selection.id] - start[selection.id], 50);
    this.show({ from: start[selection.id] - length * 0.3, to: end[selection.id] + length * 0.3 });
  }

  private reveal(selection: Place): void {
    const { start, end } = selection.lane.spans;
    const { id, lane } = selection;
    if (lane.folded || lane.height === 0) {
      lane.folded = lane.hidden = false;
      for (const one of this.lanes)
        if (one.kind === "process" && one.process === lane.process) one.folded = one.hidden = false;
      this.makeNames();
      if (lane.height === 0) this.track({ filter: (this.laneFilter.value = "") });
    }
    const length = this.window.to - this.window.from;
    if (
      end[id] < this.window.from ||
      start[id] > this.window.to ||
      end[id] - start[id] < length / 2000
    ) {
      const wanted = Math.min(length, Math.max((end[id] - start[id]) * 20, 1000));
      const middle = (start[id] + end[id]) / 2;
      this.show({ from: middle - wanted / 2, to: middle + wanted / 2 });
    }
    const y = lane.y + selection.row * ROW_HEIGHT;
    if (
      !lane.pinned &&
      (y < this.scroller.scrollTop + this.arranged.pinned ||
        y > this.scroller.scrollTop + this.scroller.clientHeight - ROW_HEIGHT)
    )
      this.scroller.scrollTop = Math.max(0, y - this.scroller.clientHeight / 2);
    this.select(selection);
  }

  private move(down: number, right: number): void {
    const { selection } = this;
    if (!selection) {
      const lane = this.lanes.find((one) => one.rows.length > 0);
      if (lane)
        this.reveal({
          lane,
          row: 0,
          id: lane.rows[0][
            Math.min(
              lane.rows[0].length - 1,
              firstAfter(lane.spans, lane.rows[0], this.window.from),
            )
          ],
        });
      return;
    }
    const { lane } = selection;
    const row = selection.row + down;
    if (row < 0 || row >= lane.rows.length) return;
    const spans = lane.spans;
    const ids = lane.rows[row];
    const middle =
      down < 0
        ? (spans.start[selection.id] + spans.end[selection.id]) / 2
        : spans.start[selection.id];
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
      const places: Place[] = [];
      for (const lane of this.lanes)
        lane.rows.forEach((ids, row) => {
          for (const id of ids)
            if (this.matches![lane.spans.name[id]] === 1) places.push({ lane, row, id });
        });
      this.found = places.sort((a, b) => a.lane.spans.start[a.id] - b.lane.spans.start[b.id]);
    }
    this.showStatus();
    this.draw();
    this.changed();
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
    const { found, foundAt, matches } = this;
    const at = foundAt >= 0 ? `${foundAt + 1} of ` : "";
    this.status.textContent = !matches
      ? ""
      : found.length === 0
        ? "No match"
        : `${at}${found.length} match${found.length === 1 ? "" : "es"}`;
    this.all.replaceChildren(...(found.length > 0 ? [matchesLink(this.search.value)] : []));
  }

  private describe(): void {
    const { trace, lanes, selection, part } = this;
    this.element.dataset.selected = selection ? this.nameOf(selection) : "";
    if (selection)
      this.details.replaceChildren(
        ...describeSpan(trace, lanes, selection, (there) => this.reveal(there)),
      );
    else if (part.active)
      this.details.replaceChildren(
        ...describeArea(trace, part, {
          zoom: () => this.show(part.window),
          clear: () => this.choose(null, null),
        }),
      );
    else
      this.details.replaceChildren(
        el(
          "p.empty",
          {},
          lanes.some((lane) => lane.rows.length > 0 || lane.series)
            ? "Click a span to see what it took, drag to add up a part of the time. W S zoom, A D move, / searches."
            : "The trace has nothing with a time of its own: no ranges, calls or counters.",
        ),
      );
  }
}
