// SPDX-License-Identifier: Apache-2.0
/**
 * The heap over time: what was held, and the most between moments; a moment is chosen on the curve, and has a
 * flame graph and a table of who held what.
 */
import { LEFT, chartWidth, drawMark, drawTimes, openChart } from "./chart";
import { theme, type Palette } from "./colours";
import type { Cell, Heap, Table, Trace, Tree } from "./data";
import { choice, el, oncePerFrame, type Part } from "./dom";
import { Flame } from "./flame";
import * as format from "./format";
import { Selection } from "./selection";
import { DataTable } from "./table";

/** Each node's own blocks and bytes at a moment: what its latest share up to then says. */
function heldAt(heap: Heap, moment: number, nodes: number): [Float64Array, Float64Array] {
  const blocks = new Float64Array(nodes);
  const bytes = new Float64Array(nodes);
  const { held } = heap;
  for (let i = 0; i < held.node.length && held.moment[i] <= moment; i++) {
    blocks[held.node[i]] = held.blocks[i];
    bytes[held.node[i]] = held.bytes[i];
  }
  return [blocks, bytes];
}

/** The tree of what a heap held at a moment: the nodes of the whole tree that held something. */
export function treeAt(all: Tree, heap: Heap, moment: number): Tree {
  const n = all.depth.length;
  const [count, self] = heldAt(heap, moment, n);
  const total = self.slice();
  const kept: number[] = [];
  const path: number[] = [];
  const parent = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    path[all.depth[i]] = i;
    parent[i] = all.depth[i] > 0 ? path[all.depth[i] - 1] : -1;
  }
  for (let i = n - 1; i >= 0; i--) {
    if (parent[i] < 0) continue;
    total[parent[i]] += total[i];
    count[parent[i]] += count[i];
  }
  for (let i = 0; i < n; i++) if (total[i] > 0) kept.push(i);
  const pick = (from: ArrayLike<number>): Float64Array => Float64Array.from(kept, (i) => from[i]);
  return {
    key: "heap-at",
    title: "Held at the moment",
    count_title: "blocks",
    isBytes: true,
    depth: Uint32Array.from(kept, (i) => all.depth[i]),
    name: Uint32Array.from(kept, (i) => all.name[i]),
    total: pick(total),
    self: pick(self),
    count: pick(count),
    place: Uint32Array.from(kept, (i) => all.place[i]),
    kind: Uint8Array.from(kept, (i) => all.kind[i]),
  };
}

/** Of a tree, each function and line: what it holds itself, and with all that it calls. */
function allocators(tree: Tree, texts: string[], whole: number): Table {
  const rows = new Map<string, Cell[]>();
  const open: string[] = [];
  const own: number[] = []; // blocks by node, less those of its children
  const path: number[] = [];
  tree.count.forEach((count, i) => {
    own[i] = count;
    path[tree.depth[i]] = i;
    if (tree.depth[i] > 0) own[path[tree.depth[i] - 1]] -= count;
  });
  for (let i = 0; i < tree.depth.length; i++) {
    if (tree.depth[i] === 0) continue; // stands for all of the heap
    const key = `${tree.name[i]} ${tree.place[i]}`;
    open.length = tree.depth[i] - 1;
    const row = rows.get(key) ?? [texts[tree.name[i]], texts[tree.place[i]], 0, 0, 0, 0];
    (row[2] as number) += tree.self[i];
    (row[3] as number) += own[i];
    if (!open.includes(key)) (row[4] as number) += tree.total[i];
    row[5] = whole > 0 ? (100 * (row[4] as number)) / whole : 0;
    rows.set(key, row);
    open.push(key);
  }
  return {
    columns: [
      { key: "function", title: "Function", kind: "text" },
      { key: "place", title: "Line", kind: "text" },
      { key: "bytes", title: "Held", kind: "bytes" },
      { key: "blocks", title: "Blocks", kind: "count" },
      { key: "total", title: "Held, all below", kind: "bytes" },
      { key: "share", title: "Share", kind: "share" },
    ],
    rows: [...rows.values()].sort(
      (a, b) => (b[2] as number) - (a[2] as number) || (b[4] as number) - (a[4] as number),
    ),
    row_count: rows.size,
    microseconds: false,
  };
}

export class HeapTime implements Part {
  readonly element = el(
    "section.memory.heap",
    { "aria-label": "Heap over time" },
    el("h1.unseen", {}, "Heap over time"),
  );
  private canvas = el("canvas", {
    tabindex: 0,
    role: "application",
    "aria-label": "Heap over time. Left and right move the cursor, P goes to the highest moment.",
  });
  private place = el("div.chart");
  private holders = el("section.holders", { "aria-live": "polite", "aria-label": "Who holds it" });
  private heap: Heap;
  private all: Tree;
  private chosen = 0;
  private highest = 0;
  private flame: Flame | null = null;
  private observer = new ResizeObserver(() => this.draw());
  private draw = oncePerFrame(() => this.paint());

  constructor(
    private trace: Trace,
    private palette: Palette,
    private changed: () => void,
  ) {
    this.all = trace.trees.find((tree) => tree.key === "heap-all")!;
    this.heap = trace.heaps.reduce((a, b) =>
      Math.max(...b.highest) > Math.max(...a.highest) ? b : a,
    );
    this.place.append(this.canvas);
    const point = (event: PointerEvent): void => this.point(this.momentAt(event.offsetX));
    this.canvas.addEventListener("pointerdown", point);
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) point(event);
    });
    this.element.append(this.tools(), this.place, this.holders);
    this.use(this.heap);
  }

  private tools(): HTMLElement {
    const title = (heap: Heap): string =>
      `${this.trace.head.texts[this.all.name[heap.node]]}${this.trace.head.processes.length > 1 ? `, process ${this.trace.head.processes[heap.process].pid}` : ""}`;
    return el(
      "div.tools",
      {},
      this.trace.heaps.length > 1
        ? choice(
            "Of",
            this.trace.heaps.map((heap, i) => [String(i), title(heap)]),
            String(this.trace.heaps.indexOf(this.heap)),
            (value) => this.use(this.trace.heaps[Number(value)]),
          )
        : null,
      el(
        "button",
        {
          type: "button",
          title: "Go to the moment that held most (P)",
          onclick: () => this.point(this.highest),
        },
        "Highest",
      ),
      el("span.spacer"),
      el("a", { href: "#flame/heap-peak" }, "Flame graph of the peak"),
      el("a", { href: "#table/heap-functions" }, "Allocators as a table"),
    );
  }

  private use(heap: Heap): void {
    this.heap = heap;
    this.highest = heap.bytes.indexOf(Math.max(...heap.bytes));
    this.point(this.highest);
  }

  private x(at: number, width: number): number {
    const { from, to } = this.trace;
    return LEFT + ((at - from) / (to - from)) * (width - LEFT);
  }

  /** The moment whose state was there at a place of the chart: the first that is not before it, by eye. */
  private momentAt(x: number): number {
    const width = chartWidth(this.place);
    const at = this.heap.at.findIndex((one) => this.x(one, width) + 2 >= x);
    return at < 0 ? this.heap.at.length - 1 : at;
  }

  private paint(): void {
    const { heap } = this;
    const chart = openChart(this.canvas, this.place, Math.max(...heap.highest) || 1);
    const { context, width, y } = chart;
    // The most between two moments is pale; what was held at the later one was there since its `since`.
    for (let i = 0, before = this.trace.from; i < heap.at.length; before = heap.at[i++]) {
      const [from, since, to] = [before, heap.since[i], heap.at[i]].map((at) =>
        Math.round(this.x(at, width)),
      );
      context.fillStyle = "#a9c1e0";
      context.fillRect(from, y(heap.highest[i]), Math.max(1, to - from), y(0) - y(heap.highest[i]));
      context.fillStyle = "#4c78b5";
      const held = i > 0 ? Math.min(heap.bytes[i], heap.bytes[i - 1]) : 0;
      context.fillRect(from, y(held), Math.max(0, since - from), y(0) - y(held));
      context.fillRect(since, y(heap.bytes[i]), Math.max(1, to - since), y(0) - y(heap.bytes[i]));
    }
    drawTimes(chart, 0, this.trace.to - this.trace.from);
    const held = format.bytes(heap.bytes[this.chosen]);
    drawMark(chart, this.x(heap.at[this.chosen], width) - 1, theme().text, held);
  }

  private point(moment: number): void {
    this.chosen = Math.max(0, Math.min(this.heap.at.length - 1, moment));
    this.showHolders();
    this.draw();
    this.changed();
  }

  private showHolders(): void {
    const at = this.heap.at[this.chosen];
    const held = this.heap.bytes[this.chosen];
    const tree = treeAt(this.all, this.heap, this.chosen);
    this.element.dataset.at = String(at);
    this.element.dataset.held = String(held);
    this.flame?.left();
    const alone = { ...this.trace, trees: [tree] };
    this.flame =
      tree.depth.length > 0
        ? new Flame(alone, [], this.palette, new Selection(alone, []), tree.key, () => {})
        : null;
    const heading = `Held at ${format.timeNs(at - this.trace.from)}: ${format.bytes(held)}`;
    this.holders.replaceChildren(
      el("h2", {}, heading),
      this.flame?.element ?? el("p.empty", {}, "Nothing is held then."),
      ...(this.flame
        ? [
            new DataTable(allocators(tree, this.trace.head.texts, held), { label: "Who holds it" })
              .element,
          ]
        : []),
    );
    if (this.element.isConnected) this.flame?.shown();
  }

  shown(): void {
    this.observer.observe(this.place);
    this.flame?.shown();
    this.draw();
  }

  left(): void {
    this.observer.disconnect();
    this.flame?.left();
  }

  toAddress(to: URLSearchParams): void {
    to.set("moment", `${this.trace.heaps.indexOf(this.heap)}.${this.chosen}`);
  }

  fromAddress(from: URLSearchParams): void {
    const [heap, moment] = (from.get("moment") ?? "").split(".").map(Number);
    if (!this.trace.heaps[heap]) return;
    this.use(this.trace.heaps[heap]);
    if (moment >= 0) this.point(moment);
  }

  key(event: KeyboardEvent): boolean {
    const acts: Record<string, () => void> = {
      ArrowLeft: () => this.point(this.chosen - 1),
      ArrowRight: () => this.point(this.chosen + 1),
      p: () => this.point(this.highest),
      P: () => this.point(this.highest),
    };
    const inFlame = this.flame?.element.contains(document.activeElement) ?? false;
    if (event.ctrlKey || event.metaKey) return false;
    if (inFlame) return this.flame!.key(event);
    acts[event.key]?.();
    return event.key in acts;
  }
}
