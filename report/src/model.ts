// SPDX-License-Identifier: Apache-2.0
/** The model as a tree: each module's share of time, memory, parameters and FLOPs. */
import type { Cell, Trace, View } from "./data";
import { el, type Part } from "./dom";
import * as format from "./format";
import { cellOf, numberOf, viewOf } from "./reader";

const AT_ONCE = 60; // rows that are open at first

interface Item {
  row: Cell[];
  name: string;
  detail: string;
  level: number; // from 1
  parent: number;
  children: number;
  open: boolean;
}

interface Measure {
  title: string;
  share: string; // keys of the view
  value: (row: Cell[]) => string;
}

export class ModelTree implements Part {
  readonly element = el("section.view.model", { "aria-labelledby": "model-title" });
  private grid = el("div.treegrid", { role: "treegrid", tabindex: 0, "aria-label": "Modules" });
  private items: Item[] = [];
  private measures: Measure[] = [];
  private focus = 0;

  constructor(trace: Trace) {
    const view = viewOf(trace, "modules") ?? viewOf(trace, "layers");
    this.element.append(
      el(
        "header.part",
        {},
        el("h1", { id: "model-title" }, "Model"),
        el(
          "p.about",
          {},
          "The modules of the model, each with its share of the whole; a module's numbers include those inside it.",
        ),
      ),
    );
    if (!view) {
      this.element.append(
        el(
          "p.empty",
          {},
          "The trace names no modules: record them with --modules, or with_modules=True.",
        ),
      );
      return;
    }
    this.read(view);
    const all = (open: boolean) => (): void => {
      for (const item of this.items) item.open = open;
      this.focus = 0;
      this.draw();
    };
    this.element.append(
      el(
        "div.tools",
        {},
        el("button", { type: "button", onclick: all(true) }, "Open all"),
        el("button", { type: "button", onclick: all(false) }, "Close all"),
        el("span.spacer"),
        el("a", { href: `#table/${view.view}` }, "All numbers as a table"),
      ),
      this.grid,
    );
    this.draw();
  }

  private read(view: View): void {
    const isModules = view.view === "modules";
    const path: number[] = [];
    for (const row of view.rows) {
      const level = isModules ? Math.max(1, numberOf(view, row, "depth")) : 1;
      const full = String(cellOf(view, row, isModules ? "path" : "name") ?? "");
      const parent = level > 1 ? (path[level - 1] ?? -1) : -1;
      path[level] = this.items.length;
      if (parent >= 0) this.items[parent].children++;
      const parentPath = parent >= 0 ? String(cellOf(view, this.items[parent].row, "path")) : "";
      const short =
        parentPath && full.startsWith(`${parentPath}.`) ? full.slice(parentPath.length + 1) : full;
      this.items.push({
        row,
        name: short || "(no module)",
        detail: isModules ? String(cellOf(view, row, "class") ?? "") : "",
        level,
        parent,
        children: 0,
        open: false,
      });
    }
    const bytes =
      (key: string) =>
      (row: Cell[]): string => {
        const value = cellOf(view, row, key);
        return value === null ? "" : format.bytes(value as number);
      };
    const time =
      (...keys: string[]) =>
      (row: Cell[]): string =>
        format.timeNs(keys.reduce((sum, key) => sum + numberOf(view, row, key), 0));
    const count =
      (key: string) =>
      (row: Cell[]): string => {
        const value = cellOf(view, row, key);
        return value === null ? "" : format.count(value as number);
      };
    const known: Measure[] = isModules
      ? [
          { title: "Time", share: "time_percent", value: time("forward_ns", "backward_ns") },
          { title: "Memory", share: "activation_percent", value: bytes("activation_bytes") },
          { title: "Parameters", share: "parameters_percent", value: count("parameters") },
          {
            title: "FLOPs",
            share: "flops_percent",
            value: (row) =>
              format.count(numberOf(view, row, "flops") + numberOf(view, row, "backward_flops")),
          },
        ]
      : [{ title: "Time", share: "time_percent", value: time("time_ns") }];
    this.measures = known.filter((measure) =>
      view.rows.some((row) => cellOf(view, row, measure.share) !== null),
    );
    this.shareOf = (row, measure) => cellOf(view, row, measure.share) as number | null;
    let shown = this.items.filter((item) => item.level === 1).length;
    for (const item of this.items)
      if (this.isShown(item) && shown + item.children <= AT_ONCE) {
        item.open = item.children > 0;
        shown += item.children;
      }
  }

  private shareOf: (row: Cell[], measure: Measure) => number | null = () => null;

  private isShown(item: Item): boolean {
    for (let up = item.parent; up >= 0; up = this.items[up].parent)
      if (!this.items[up].open) return false;
    return true;
  }

  private draw(): void {
    const head = el(
      "div.tr.head",
      { role: "row" },
      el("div.th", { role: "columnheader" }, "Module"),
      ...this.measures.map((measure) => el("div.th", { role: "columnheader" }, measure.title)),
    );
    const rows = this.items
      .map((item, i) => (this.isShown(item) ? this.rowOf(item, i) : null))
      .filter((row): row is HTMLDivElement => row !== null);
    this.grid.style.setProperty(
      "--columns",
      `minmax(180px, 2fr) repeat(${this.measures.length}, minmax(140px, 1fr))`,
    );
    this.grid.replaceChildren(head, ...rows);
  }

  private rowOf(item: Item, i: number): HTMLDivElement {
    const toggle = (): void => {
      item.open = !item.open;
      this.focus = i;
      this.draw();
    };
    const name = el(
      "div.td.name",
      { role: "gridcell", title: item.detail ? `${item.name} (${item.detail})` : item.name },
      el("span.twist", { "aria-hidden": "true" }, item.children === 0 ? "" : item.open ? "▾" : "▸"),
      item.name,
      item.detail ? el("span.detail", {}, ` ${item.detail}`) : null,
    );
    name.style.paddingLeft = `${(item.level - 1) * 16}px`;
    const cells = this.measures.map((measure) => {
      const share = this.shareOf(item.row, measure);
      const cell = el(
        "div.td.number.bar",
        { role: "gridcell", "data-key": measure.share, "data-value": JSON.stringify(share) },
        el("span.value", {}, measure.value(item.row)),
        el("span.share", {}, share === null ? "" : format.share(share)),
      );
      cell.style.setProperty("--part", `${Math.max(0, Math.min(100, share ?? 0))}%`);
      return cell;
    });
    return el(
      i === this.focus ? "div.tr.focused" : "div.tr",
      {
        role: "row",
        "aria-level": item.level,
        "aria-expanded": item.children > 0 ? String(item.open) : undefined,
        "data-name": item.name,
        onclick:
          item.children > 0
            ? toggle
            : () => {
                this.focus = i;
                this.draw();
              },
      },
      name,
      ...cells,
    );
  }

  key(event: KeyboardEvent): boolean {
    if (
      this.items.length === 0 ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      (event.target as Element).matches("button, a")
    )
      return false;
    const item = this.items[this.focus];
    const seen = this.items.map((_, i) => i).filter((i) => this.isShown(this.items[i]));
    const move = (by: number): void => {
      this.focus = seen[Math.max(0, Math.min(seen.length - 1, seen.indexOf(this.focus) + by))];
    };
    const acts: Record<string, () => void> = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      Home: () => move(-seen.length),
      End: () => move(seen.length),
      ArrowRight: () => {
        if (item.children > 0 && !item.open) item.open = true;
        else if (item.children > 0) move(1);
      },
      ArrowLeft: () => {
        if (item.open && item.children > 0) item.open = false;
        else if (item.parent >= 0) this.focus = item.parent;
      },
      Enter: () => {
        if (item.children > 0) item.open = !item.open;
      },
    };
    if (!(event.key in acts)) return false;
    acts[event.key]();
    this.draw();
    this.grid.querySelector(".focused")?.scrollIntoView({ block: "nearest" });
    return true;
  }
}
