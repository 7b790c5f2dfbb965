// SPDX-License-Identifier: Apache-2.0
/**
 * Flame graph and icicle of the trees, left-heavy, or of a thread's ranges in the order of time; of
 * two traces, coloured by change.
 */
import type { Palette } from "./colours";
import type { Trace, Tree } from "./data";
import { choice, el, fitCanvas, oncePerFrame, searchBox, type Part } from "./dom";
import * as format from "./format";
import type { Lane } from "./lanes";
import { Raster } from "./raster";
import { drawRow, finish, painter } from "./rowpaint";
import { clampWindow, matchTexts, ROW_HEIGHT, spanAt, zoomAround, type Window } from "./rows";
import { matchesLink } from "./matches";
import { changeColour, changeFacts, changeLegend, sideTotals, type Side } from "./change";
import { treeOfPart } from "./part";
import { sandwichOf } from "./sandwich";
import { readWindow, type Selection } from "./selection";
import { layOut, type Layout } from "./tree";

/** What is drawn: a tree, or the rows of a lane. */
interface Source {
  key: string;
  title: string;
  tree?: Tree;
  lane?: Lane;
  layout?: Layout; // of callers and callees: not that of the tree
  of?: Source; // what they are of
}

export class Flame implements Part {
  readonly element: HTMLElement;
  private canvas = el("canvas", {
    tabindex: 0,
    role: "application",
    "aria-label":
      "Flame graph. Arrows move, Enter zooms to the selection, Escape shows all, slash searches.",
    "aria-describedby": "flame-details",
  });
  private scroller = el("div.flame-scroller");
  private details = el("section.details.flame", {
    id: "flame-details",
    "aria-live": "polite",
    "aria-label": "Selection",
  });
  private status = el("span.count", { role: "status" });
  private all = el("span"); // a link to the table of matches
  private place = el("div.tools");
  private search: HTMLInputElement;
  private sources: Source[];
  private source: Source;
  private layout!: Layout;
  private window!: Window;
  private whole!: Window;
  private icicle = true;
  private side: Side = "b"; // of a comparison: whose times are the widths
  private legend = el("div.legend.change", { "aria-label": "Colours" });
  private matches: Uint8Array | null = null;
  private selected = -1;
  private selectedRow = -1;
  private found: [id: number, row: number][] = []; // what a search matches
  private foundAt = -1;
  private raster = new Raster();
  private observer = new ResizeObserver(() => this.draw());
  readonly draw = oncePerFrame(() => this.paint());

  constructor(
    private trace: Trace,
    lanes: Lane[],
    private palette: Palette,
    part: Selection,
    key: string,
    private changed: () => void,
  ) {
    const ordered = lanes.filter(
      (lane) => lane.kind === "spans" && lane.thread >= 0 && lane.rows.length > 0,
    );
    const parts = part.active
      ? [false, true].map((samples) =>
          treeOfPart(part.lanes, part.window, samples ? part.samples : part.ranges, samples),
        )
      : [];
    this.sources = [
      ...parts
        .filter((tree): tree is Tree => tree !== null)
        .map((tree) => ({ key: tree.key, title: tree.title, tree })),
      ...trace.trees
        .filter((tree) => tree.name.length > 0)
        .map((tree) => ({ key: tree.key, title: tree.title, tree })),
      ...ordered.map((lane, i) => ({
        key: `time-${i}`,
        title: `In order of time: ${lane.title}`,
        lane,
      })),
    ];
    this.source = this.sources.find((source) => source.key === key) ?? this.sources[0];
    this.search = searchBox(
      "Search names",
      (text) => {
        this.find(text);
        this.changed();
      },
      (back) => this.step(back ? -1 : 1),
    );
    this.element = el(
      "section.flamegraph",
      { "aria-label": "Flame graph" },
      el("h1.unseen", {}, "Flame graph"),
    );
    if (!this.source) {
      this.element.append(
        el("p.empty", {}, "The trace has no ranges, samples, modules or functions to draw."),
      );
      return;
    }
    this.scroller.append(this.canvas);
    this.element.append(this.place, this.scroller, this.legend, this.details);
    this.use(this.source);
    this.listen();
  }

  private makeTools(): void {
    const tools: (Node | null)[] = [
      choice(
        "Of",
        this.sources.map((source) => [source.key, source.title]),
        this.source.key,
        (key) => this.use(this.sources.find((source) => source.key === key)!),
      ),
      this.source.of
        ? null
        : choice(
            "Direction",
            [
              ["icicle", "callers on top"],
              ["flame", "callers at the bottom"],
            ],
            this.icicle ? "icicle" : "flame",
            (value) => {
              this.icicle = value === "icicle";
              this.draw();
            },
          ),
      this.source.tree?.before
        ? choice(
            "Width",
            [
              ["b", "after (B)"],
              ["a", "before (A)"],
            ],
            this.side,
            (value) => {
              this.side = value as Side;
              this.use(this.source);
            },
          )
        : null,
      this.search,
      el(
        "button",
        {
          type: "button",
          "aria-label": "Previous match",
          title: "Previous match",
          onclick: () => this.step(-1),
        },
        "↑",
      ),
      el(
        "button",
        {
          type: "button",
          "aria-label": "Next match",
          title: "Next match",
          onclick: () => this.step(1),
        },
        "↓",
      ),
      el(
        "button",
        { type: "button", title: "Show all (Escape)", onclick: () => this.show(this.whole) },
        "All",
      ),
      el("span.spacer"),
      this.status,
      this.all,
    ];
    this.place.replaceChildren(...tools.filter((one): one is Node => one !== null));
  }

  private use(source: Source): void {
    this.source = source;
    this.makeTools();
    this.legend.replaceChildren(
      ...(source.tree?.before ? changeLegend(this.trace, source.tree.before) : []),
    );
    this.legend.hidden = !source.tree?.before;
    if (source.layout) {
      this.layout = source.layout;
      this.icicle = true;
    } else if (source.tree) this.layout = layOut(source.tree, sideTotals(source.tree, this.side));
    else {
      const { rows, spans } = source.lane!;
      this.layout = {
        spans,
        rows,
        whole: this.trace.to - this.trace.from,
        node: new Uint32Array(0),
        parent: new Int32Array(0),
      };
    }
    this.whole = source.tree
      ? { from: 0, to: Math.max(1, this.layout.whole) }
      : { from: this.trace.from, to: this.trace.to };
    this.window = this.whole;
    this.selected = -1;
    this.element.dataset.source = source.key;
    this.element.dataset.whole = String(this.layout.whole);
    this.find(this.search.value);
    this.describe();
    this.changed();
  }

  /** The name of what is drawn is of the address's path. */
  get name(): string {
    return (this.source?.of ?? this.source)?.key ?? "";
  }

  /** Callers and callees of a function, from all places where the tree has it. */
  private sandwich(name: number): void {
    const of = this.source.of ?? this.source;
    const text = this.trace.head.texts[name];
    const title = `Callers and callees of ${text}`;
    const made = of.tree && sandwichOf(of.tree, name, title);
    if (!made) return;
    const source: Source = { key: "sandwich", title, ...made, of };
    this.sources = [source, ...this.sources.filter((one) => !one.of)];
    this.use(source);
    const row = made.layout.rows.findIndex(
      (ids) => ids.length === 1 && made.layout.spans.name[ids[0]] === name,
    );
    this.select(made.layout.rows[row][0], row);
  }

  toAddress(to: URLSearchParams): void {
    if (!this.source) return;
    if (this.window.from !== this.whole.from || this.window.to !== this.whole.to)
      to.set("at", `${Math.round(this.window.from)}-${Math.round(this.window.to)}`);
    if (this.selected >= 0) to.set("frame", `${this.selectedRow}.${this.selected}`);
    if (this.search.value) to.set("search", this.search.value);
    if (this.source.of) to.set("sandwich", this.trace.head.texts[this.source.tree!.name[0]]);
  }

  fromAddress(from: URLSearchParams): void {
    if (!this.source) return;
    const window = readWindow(from.get("at"));
    const [row, id] = (from.get("frame") ?? "").split(".").map(Number);
    this.search.value = from.get("search") ?? "";
    const name = this.trace.head.texts.indexOf(from.get("sandwich") ?? "\0");
    if (name >= 0) this.sandwich(name);
    if (this.layout.rows[row]?.includes(id)) {
      this.selected = id;
      this.selectedRow = row;
    }
    if (window) this.window = clampWindow(window, this.whole);
    this.find(this.search.value);
    this.describe();
  }

  shown(): void {
    if (!this.source) return;
    this.observer.observe(this.scroller);
    this.draw();
  }

  left(): void {
    this.observer.disconnect();
  }

  private height(): number {
    return Math.max(this.scroller.clientHeight - 2, this.layout.rows.length * ROW_HEIGHT + 4);
  }

  private paint(): void {
    const width = Math.max(100, this.scroller.clientWidth);
    const height = this.height();
    const context = fitCanvas(this.canvas, width, height);
    const p = painter(
      {
        context,
        raster: this.raster,
        spans: this.layout.spans,
        palette: this.palette,
        texts: this.trace.head.texts,
        window: this.window,
        width,
      },
      [],
    );
    p.matches = this.matches;
    p.selected = this.selected;
    const { tree } = this.source;
    if (tree?.before) p.colourOf = (id) => changeColour(this.trace, tree, id);
    this.layout.rows.forEach((row, i) => drawRow(p, row, this.y(i), ROW_HEIGHT));
    finish(p);
    this.element.dataset.from = String(this.window.from);
    this.element.dataset.to = String(this.window.to);
  }

  private y(row: number): number {
    return this.icicle ? 2 + row * ROW_HEIGHT : this.height() - 2 - (row + 1) * ROW_HEIGHT;
  }

  show(window: Window): void {
    this.window = clampWindow(window, this.whole);
    this.draw();
    this.changed();
  }

  private listen(): void {
    const timeAt = (x: number): number =>
      this.window.from + (x / this.scroller.clientWidth) * (this.window.to - this.window.from);
    const at = (event: MouseEvent): [number, number] => {
      const row = Math.floor(
        (this.icicle ? event.offsetY - 2 : this.height() - 2 - event.offsetY) / ROW_HEIGHT,
      );
      const ids = this.layout.rows[row];
      return ids
        ? [
            spanAt(
              this.layout.spans,
              ids,
              timeAt(event.offsetX),
              (this.window.to - this.window.from) / this.scroller.clientWidth,
            ),
            row,
          ]
        : [-1, -1];
    };
    this.canvas.addEventListener("click", (event) => this.select(...at(event)));
    this.canvas.addEventListener("dblclick", () => this.zoomTo(this.selected));
    this.canvas.addEventListener("pointermove", (event) => {
      const [id] = at(event);
      this.canvas.title =
        id < 0
          ? ""
          : `${this.trace.head.texts[this.layout.spans.name[id]]} · ${this.amount(this.length(id))}`;
    });
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
        if (event.shiftKey) {
          const by =
            ((event.deltaX || event.deltaY) / this.scroller.clientWidth) *
            (this.window.to - this.window.from);
          this.show({ from: this.window.from + by, to: this.window.to + by });
        } else this.show(zoomAround(this.window, timeAt(event.offsetX), 1.0015 ** event.deltaY));
        event.preventDefault();
      },
      { passive: false },
    );
  }

  private amount(value: number): string {
    return this.source.tree?.isBytes ? format.bytes(value) : format.timeNs(value);
  }

  private length(id: number): number {
    const { tree } = this.source;
    if (tree?.before) return sideTotals(tree, this.side)[id];
    return tree ? tree.total[id] : this.layout.spans.end[id] - this.layout.spans.start[id];
  }

  private select(id: number, row: number): void {
    this.selected = id;
    this.selectedRow = row;
    this.describe();
    this.draw();
    this.changed();
  }

  private zoomTo(id: number): void {
    if (id >= 0) this.show({ from: this.layout.spans.start[id], to: this.layout.spans.end[id] });
  }

  key(event: KeyboardEvent): boolean {
    if (!this.source || event.ctrlKey || event.metaKey || event.altKey) return false;
    const length = this.window.to - this.window.from;
    const pan = (by: number): void =>
      this.show({ from: this.window.from + by * length, to: this.window.to + by * length });
    const middle = (this.window.from + this.window.to) / 2;
    const acts: Record<string, () => void> = {
      "/": () => this.search.focus(),
      Escape: () => this.show(this.whole),
      "0": () => this.show(this.whole),
      Enter: () => this.zoomTo(this.selected),
      w: () => this.show(zoomAround(this.window, middle, 0.7)),
      s: () => this.show(zoomAround(this.window, middle, 1.4)),
      a: () => pan(-0.15),
      d: () => pan(0.15),
      c: () => {
        if (this.selected >= 0) this.sandwich(this.layout.spans.name[this.selected]);
      },
      n: () => this.step(1),
      p: () => this.step(-1),
      ArrowLeft: () => this.beside(-1),
      ArrowRight: () => this.beside(1),
      ArrowUp: () => this.up(this.icicle ? -1 : 1),
      ArrowDown: () => this.up(this.icicle ? 1 : -1),
    };
    acts[event.key]?.();
    return event.key in acts;
  }

  private beside(by: number): void {
    const ids = this.layout.rows[this.selectedRow] ?? this.layout.rows[0];
    const next =
      ids[
        Math.max(
          0,
          Math.min(ids.length - 1, this.selectedRow < 0 ? 0 : ids.indexOf(this.selected) + by),
        )
      ];
    this.select(next, Math.max(0, this.selectedRow));
  }

  private up(by: number): void {
    const ids = this.layout.rows[this.selectedRow + by];
    if (!ids || this.selected < 0) return;
    const { start, end } = this.layout.spans;
    const id = spanAt(
      this.layout.spans,
      ids,
      start[this.selected] + (by > 0 ? 0 : end[this.selected] - start[this.selected]) / 2,
      0,
    );
    if (id >= 0) this.select(id, this.selectedRow + by);
  }

  private find(text: string): void {
    this.matches = matchTexts(this.trace.head.texts, text);
    this.found = [];
    this.foundAt = -1;
    this.covered = 0;
    if (this.matches) {
      const { spans, rows } = this.layout;
      let covered: Window[] = []; // by matches of the rows above: what lies in one counts once
      for (const [at, row] of rows.entries()) {
        const mine: Window[] = [];
        for (const id of row) {
          if (this.matches[spans.name[id]] !== 1) continue;
          this.found.push([id, at]);
          if (!covered.some((one) => one.from <= spans.start[id] && spans.end[id] <= one.to)) {
            this.covered += spans.end[id] - spans.start[id];
            mine.push({ from: spans.start[id], to: spans.end[id] });
          }
        }
        if (covered.length + mine.length < 5000) covered = covered.concat(mine);
      }
    }
    this.showStatus();
    this.draw();
  }

  private covered = 0; // by matches

  private step(by: number): void {
    const { found } = this;
    if (found.length === 0) return;
    this.foundAt = (this.foundAt + by + found.length) % found.length;
    const [id, row] = found[this.foundAt];
    const { start, end } = this.layout.spans;
    const length = this.window.to - this.window.from;
    // What is out of sight or too narrow to see gets room around it.
    if (
      start[id] < this.window.from ||
      end[id] > this.window.to ||
      end[id] - start[id] < length / 200
    )
      this.show({
        from: start[id] - 5 * (end[id] - start[id]),
        to: end[id] + 5 * (end[id] - start[id]),
      });
    this.scroller.scrollTop = Math.max(0, this.y(row) - this.scroller.clientHeight / 2);
    this.select(id, row);
    this.showStatus();
  }

  private showStatus(): void {
    const { found, foundAt, matches } = this;
    const at = foundAt >= 0 ? `${foundAt + 1} of ` : "";
    const share = format.percent(this.covered, this.layout.whole);
    this.status.textContent = matches
      ? `${at}${found.length} match${found.length === 1 ? "" : "es"}, ${share}`
      : "";
    this.all.replaceChildren(...(found.length > 0 ? [matchesLink(this.search.value)] : []));
  }

  private describe(): void {
    const id = this.selected;
    this.element.dataset.selected = id < 0 ? "" : this.trace.head.texts[this.layout.spans.name[id]];
    if (id < 0) {
      this.details.replaceChildren(
        el(
          "p.empty",
          {},
          "Click a frame for its numbers; double-click or Enter zooms to it, Escape shows all.",
        ),
      );
      return;
    }
    const { tree } = this.source;
    const name = this.trace.head.texts[this.layout.spans.name[id]];
    const facts: [string, string][] = tree?.before
      ? changeFacts(this.trace, tree, id)
      : [
          ["Total", this.amount(this.length(id))],
          ["Share", format.percent(this.length(id), this.layout.whole)],
        ];
    if (tree && !tree.before) {
      facts.push(
        ["Self", this.amount(tree.self[id])],
        [
          tree.count_title.charAt(0).toUpperCase() + tree.count_title.slice(1),
          String(tree.count[id]),
        ],
      );
    }
    if (tree) {
      if (tree.place[id]) facts.push(["Place", this.trace.head.texts[tree.place[id]]]);
    }
    const canTurn = tree && !tree.before;
    this.details.replaceChildren(
      el(
        "div.facts-box",
        {},
        el("h2", {}, name),
        canTurn
          ? el(
              "button",
              {
                type: "button",
                title: "Callers and callees (C)",
                onclick: () => this.sandwich(this.layout.spans.name[id]),
              },
              "Callers and callees",
            )
          : null,
        el(
          "dl.facts",
          {},
          ...facts.map(([title, text]) =>
            el("div", {}, el("dt", {}, title), el("dd", { "data-fact": title }, text)),
          ),
        ),
      ),
    );
  }
}
