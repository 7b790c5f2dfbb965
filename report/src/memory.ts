// SPDX-License-Identifier: Apache-2.0
/** Memory over time: stacked by what holds it, the peak marked; who holds it under the cursor. */
import { LEFT, chartWidth, drawMark, drawTimes, openChart } from "./chart";
import { theme } from "./colours";
import { CATEGORIES, type Cell, type Table, type Trace } from "./data";
import { choice, el, oncePerFrame, type Part } from "./dom";
import * as format from "./format";
import type { Lane } from "./lanes";
import { spanAt } from "./rows";
import { DataTable } from "./table";
import type { Selection } from "./selection";

const SHOWN = 8; // groups with a colour of their own
const COLOURS = [
  "#4c78b5",
  "#7aa974",
  "#c9a24d",
  "#a783c2",
  "#5fa6a6",
  "#c47f72",
  "#8d97a8",
  "#b0708f",
];
const REST = "#a9b0ba";

type By = "category" | "module" | "owner";

/** What was held at one moment, by number of a group. */
interface Moment {
  at: number;
  total: number;
  parts: Float64Array;
}

export class Memory implements Part {
  readonly element = el(
    "section.memory",
    { "aria-label": "Memory over time" },
    el("h1.unseen", {}, "Memory over time"),
  );
  private canvas = el("canvas", {
    tabindex: 0,
    role: "application",
    "aria-label": "Memory over time. Left and right move the cursor, P goes to the peak.",
  });
  private place = el("div.chart");
  private legend = el("div.legend", { "aria-label": "Colours" });
  private holders = el("section.holders", { "aria-live": "polite", "aria-label": "Who holds it" });
  private series: number[];
  private chosen: number;
  private by: By = "category";
  private owner: Uint32Array; // by block: number of a text; 0: no range
  private module: Uint32Array;
  private names: string[] = [];
  private groups: Uint32Array = new Uint32Array(0); // by block
  private moments: Moment[] = [];
  private peak = 0;
  private cursor = -1; // a moment
  private observer = new ResizeObserver(() => this.draw());
  private draw = oncePerFrame(() => this.paint());

  constructor(
    private trace: Trace,
    lanes: Lane[],
    private part: Selection,
  ) {
    const { blocks } = trace;
    this.series = [...new Set(blocks.series)].sort((a, b) => a - b);
    this.chosen = this.series[0];
    this.owner = new Uint32Array(blocks.count);
    this.module = new Uint32Array(blocks.count);
    if (this.series.length === 0) {
      this.element.append(
        el(
          "p.empty",
          {},
          "The trace has no allocations: record those of tensors with --memory, or profile_memory=True.",
        ),
      );
      return;
    }
    this.findOwners(lanes);
    const title = (series: number): string =>
      `${trace.series[series].name}${trace.head.processes.length > 1 ? `, process ${trace.head.processes[trace.series[series].process].pid}` : ""}`;
    const tools = el(
      "div.tools",
      {},
      this.series.length > 1
        ? choice(
            "Of",
            this.series.map((one) => [String(one), title(one)]),
            String(this.chosen),
            (value) => {
              this.chosen = Number(value);
              this.arrange();
            },
          )
        : null,
      choice(
        "Stacked by",
        [
          ["category", "category"],
          ["module", "module"],
          ["owner", "owner"],
        ],
        this.by,
        (value) => {
          this.by = value as By;
          this.arrange();
        },
      ),
      el(
        "button",
        { type: "button", title: "Go to the peak (P)", onclick: () => this.point(this.peak) },
        "Peak",
      ),
      el("span.spacer"),
      el("a", { href: "#table/memory" }, "Devices and holders as a table"),
    );
    this.place.append(this.canvas);
    this.element.append(tools, this.place, this.legend, this.holders);
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) this.pointAt(event.offsetX);
    });
    this.canvas.addEventListener("pointerdown", (event) => this.pointAt(event.offsetX));
    this.arrange();
  }

  /** The innermost range that was open on the thread when the block was taken. */
  private findOwners(lanes: Lane[]): void {
    const { blocks, ranges } = this.trace;
    const rows = new Map(
      lanes
        .filter((lane) => lane.kind === "spans" && lane.thread >= 0 && !lane.samples)
        .reverse()
        .map((lane) => [lane.thread, lane.rows]),
    );
    for (let i = 0; i < blocks.count; i++) {
      const mine = rows.get(blocks.thread[i]) ?? [];
      for (const row of mine) {
        const id = spanAt(ranges, row, blocks.start[i], 0);
        if (id < 0) break;
        this.owner[i] = ranges.name[id];
        if (ranges.module[id]) this.module[i] = ranges.module[id];
      }
    }
  }

  private groupName(block: number, by: By): string {
    const { texts } = this.trace.head;
    if (by === "category") return CATEGORIES[this.trace.blocks.category[block]];
    if (by === "module") return this.module[block] ? texts[this.module[block]] : "(no module)";
    return this.owner[block] ? texts[this.owner[block]] : "(no range)";
  }

  /**
   * Sweeps over all changes once; of each column of the chart the moment that held most is kept.
   */
  private arrange(): void {
    const { blocks } = this.trace;
    const { from, to } = this.part.window;
    const mine = Array.from(blocks.start.keys()).filter((i) => blocks.series[i] === this.chosen);
    const held = new Map<string, number>();
    for (const i of mine)
      held.set(
        this.groupName(i, this.by),
        (held.get(this.groupName(i, this.by)) ?? 0) + blocks.bytes[i],
      );
    this.names = [...held].sort((a, b) => b[1] - a[1]).map(([name]) => name);
    const number = new Map(this.names.map((name, i) => [name, i]));
    this.groups = new Uint32Array(blocks.count);
    for (const i of mine) this.groups[i] = number.get(this.groupName(i, this.by))!;

    const ends = mine
      .filter((i) => blocks.end[i] !== Infinity)
      .sort((a, b) => blocks.end[a] - blocks.end[b]);
    const columns = 900;
    const now = new Float64Array(this.names.length);
    let total = 0;
    this.moments = [];
    this.peak = 0;
    // Of a part of the time, what was taken and freed before it is added up first: column -1.
    for (let column = -1, s = 0, e = 0; column < columns; column++) {
      const until = column < 0 ? from : from + ((column + 1) / columns) * (to - from);
      let best: Moment = { at: until, total, parts: now.slice() };
      while (
        (s < mine.length && blocks.start[mine[s]] <= until) ||
        (e < ends.length && blocks.end[ends[e]] <= until)
      ) {
        // What is freed at the moment at which another is taken goes first.
        if (
          e < ends.length &&
          (s >= mine.length || blocks.end[ends[e]] <= blocks.start[mine[s]]) &&
          blocks.end[ends[e]] <= until
        ) {
          const i = ends[e++];
          now[this.groups[i]] -= blocks.bytes[i];
          total -= blocks.bytes[i];
        } else if (s < mine.length && blocks.start[mine[s]] <= until) {
          const i = mine[s++];
          now[this.groups[i]] += blocks.bytes[i];
          total += blocks.bytes[i];
          if (total > best.total) best = { at: blocks.start[i], total, parts: now.slice() };
        } else break;
      }
      if (column < 0) continue;
      this.moments.push(best);
      if (best.total > this.moments[this.peak].total) this.peak = column;
    }
    this.element.dataset.peak = String(this.moments[this.peak].total);
    this.element.dataset.peakAt = String(this.moments[this.peak].at);
    this.showLegend();
    this.point(this.peak);
  }

  private colour(group: number): string {
    return group < SHOWN ? COLOURS[group] : REST;
  }

  private showLegend(): void {
    const entry = (name: string, colour: string): HTMLElement => {
      const swatch = el("i", { "aria-hidden": "true" });
      swatch.style.background = colour;
      return el("span", {}, swatch, name);
    };
    this.legend.replaceChildren(
      ...this.names.slice(0, SHOWN).map((name, i) => entry(name, COLOURS[i])),
      ...(this.names.length > SHOWN ? [entry(`${this.names.length - SHOWN} others`, REST)] : []),
    );
  }

  shown(): void {
    if (this.series.length === 0) return;
    this.observer.observe(this.place);
    this.draw();
  }

  left(): void {
    this.observer.disconnect();
  }

  private paint(): void {
    const colours = theme();
    const most = this.moments[this.peak].total || 1;
    const chart = openChart(this.canvas, this.place, most);
    const { context, width, y } = chart;
    const step = (width - LEFT) / this.moments.length;
    this.moments.forEach((moment, i) => {
      // Whole pixels: parts of one would show as stripes.
      const [from, to] = [i, i + 1].map((at) => Math.round(LEFT + at * step));
      let sum = 0;
      moment.parts.forEach((bytes, group) => {
        if (bytes <= 0) return;
        context.fillStyle = this.colour(group);
        context.fillRect(from, y(sum + bytes), to - from, Math.max(0, y(sum) - y(sum + bytes)));
        sum += bytes;
      });
    });
    drawTimes(chart, this.part.window.from, this.part.window.to);
    const mark = (moment: number, colour: string, text: string): void =>
      drawMark(chart, LEFT + (moment + 0.5) * step, colour, text);
    if (this.cursor >= 0 && this.cursor !== this.peak)
      mark(this.cursor, colours.accent, format.bytes(this.moments[this.cursor].total));
    mark(this.peak, colours.text, `peak ${format.bytes(most)}`);
  }

  private pointAt(x: number): void {
    const width = chartWidth(this.place) - LEFT;
    this.point(Math.floor(((x - LEFT) / width) * this.moments.length));
  }

  private point(moment: number): void {
    this.cursor = Math.max(0, Math.min(this.moments.length - 1, moment));
    this.showHolders();
    this.draw();
  }

  key(event: KeyboardEvent): boolean {
    const acts: Record<string, () => void> = {
      ArrowLeft: () => this.point(this.cursor - 1),
      ArrowRight: () => this.point(this.cursor + 1),
      p: () => this.point(this.peak),
      P: () => this.point(this.peak),
    };
    if (this.series.length === 0 || event.ctrlKey || event.metaKey) return false;
    acts[event.key]?.();
    return event.key in acts;
  }

  /** Every block that is held at the cursor's moment, by owner, module and category. */
  private showHolders(): void {
    const { blocks } = this.trace;
    const { at, total } = this.moments[this.cursor];
    const rows = new Map<string, Cell[]>();
    for (let i = 0; i < blocks.count && blocks.start[i] <= at; i++) {
      if (blocks.series[i] !== this.chosen || blocks.end[i] <= at) continue;
      const cells = (["owner", "module", "category"] as const).map((by) => this.groupName(i, by));
      const key = cells.join("\u0000");
      const row = rows.get(key) ?? [cells[0], cells[1], cells[2], 0, 0, 0];
      (row[3] as number) += blocks.bytes[i];
      (row[4] as number) += 1;
      row[5] = (100 * (row[3] as number)) / (total || 1);
      rows.set(key, row);
    }
    const table: Table = {
      columns: [
        { key: "name", title: "Allocated by", kind: "text" },
        { key: "module", title: "Module", kind: "text" },
        { key: "category", title: "Category", kind: "text" },
        { key: "bytes", title: "Held", kind: "bytes" },
        { key: "count", title: "Blocks", kind: "count" },
        { key: "share", title: "Share", kind: "share" },
      ],
      rows: [...rows.values()].sort((a, b) => (b[3] as number) - (a[3] as number)),
      row_count: rows.size,
      microseconds: false,
    };
    this.element.dataset.held = String(total);
    const heading = `${this.cursor === this.peak ? "At the peak" : "At the cursor"}: ${format.bytes(total)}, ${format.timeNs(at)} after the start`;
    this.holders.replaceChildren(
      el("h2", {}, heading),
      table.rows.length > 0
        ? new DataTable(table, { label: "Who holds it" }).element
        : el("p.empty", {}, "Nothing is held then."),
    );
  }
}
