// SPDX-License-Identifier: Apache-2.0
/**
 * The roofline: each operator's FLOPS against its FLOPs for a byte moved, under what the machine
 * can do.
 */
import type { Cell, Trace, View } from "./data";
import { el, type Part } from "./dom";
import * as format from "./format";
import { cellOf, numberOf, totalOf, viewOf } from "./reader";
import { DataTable } from "./table";

const WIDTHS = [480, 1100]; // of the chart: texts are as large as elsewhere, whatever the window's width
const HEIGHT = 420;
const [LEFT, RIGHT, TOP, BOTTOM] = [70, 24, 20, 46];
const LABELS = 12;

interface Point {
  row: Cell[];
  name: string;
  x: number; // FLOPs a byte
  y: number; // GFLOPS
  part: number; // of the time of all, from 0 to 1
}

interface Roof {
  flops: number; // billions a second, as bytes
  bytes: number;
}

type Attributes = Record<string, string | number>;

function svg(tag: string, attributes: Attributes, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** A number as an axis or a sentence has it: 0.031, 2.5, 340. */
const short = (value: number): string =>
  (value >= 100
    ? value.toFixed(0)
    : value >= 10
      ? value.toFixed(1)
      : value >= 1
        ? value.toFixed(2)
        : value.toPrecision(2)
  )
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "");

/** Decades that hold all of the values. */
function decades(values: number[]): [number, number] {
  const logs = values.filter((value) => value > 0 && Number.isFinite(value)).map(Math.log10);
  const low = Math.floor(Math.min(...logs));
  return [low, Math.max(low + 1, Math.ceil(Math.max(...logs)))];
}

export class Roofline implements Part {
  readonly element = el("section.view.roofline", { "aria-labelledby": "roofline-title" });
  private details = el("p.details-line", { role: "status" });
  private points: Point[] = [];
  private roof: Roof | null = null;
  private place = el("div.chart-place");
  private observer = new ResizeObserver(() => this.fit());

  constructor(trace: Trace) {
    this.element.append(
      el(
        "header.part",
        {},
        el("h1", { id: "roofline-title" }, "Roofline"),
        el(
          "p.about",
          {},
          "How fast each operator computes, against how much it computes for a byte that it moves. Left of the edge memory is the limit, right of it the processor.",
        ),
      ),
    );
    const view = viewOf(trace, "roofline");
    if (!view) {
      this.element.append(
        el(
          "p.empty",
          {},
          "The trace has no operators with FLOPs and bytes: record operators and their shapes with --ops --shapes, or record_shapes=True.",
        ),
      );
      return;
    }
    const whole = view.rows.reduce((sum, row) => sum + numberOf(view, row, "time_ns"), 0) || 1;
    this.points = view.rows
      .map((row) => ({
        row,
        name: String(cellOf(view, row, "name")),
        x: numberOf(view, row, "intensity"),
        y: numberOf(view, row, "gflops_per_second"),
        part: numberOf(view, row, "time_ns") / whole,
      }))
      .filter((point) => point.x > 0 && point.y > 0);
    const roof = (this.roof = this.roofOf(view));
    this.element.append(
      this.place,
      this.details,
      roof
        ? el(
            "p.hint",
            {},
            `The roof was measured on the machine that recorded: ${short(roof.flops)} GFLOPS of 32-bit multiply-adds, ${short(roof.bytes)} GB/s of memory.`,
          )
        : el(
            "p.hint.no-roof",
            {},
            "The roof is not in the trace. To measure it as part of a recording: sonde run --roof.",
          ),
      el(
        "div.rows",
        {},
        new DataTable(view, {
          blank: true,
          label: "Operators of the roofline",
          choose: (row) => this.choose(row),
        }).element,
      ),
    );
    this.describe(null, view);
  }

  private view!: View;

  shown(): void {
    if (this.points.length > 0) this.observer.observe(this.place);
    this.fit();
  }

  left(): void {
    this.observer.disconnect();
  }

  /** Draws the chart as wide as its place. */
  private fit(): void {
    const width = Math.max(WIDTHS[0], Math.min(WIDTHS[1], Math.round(this.place.clientWidth)));
    if (this.place.dataset.width === String(width) || !this.view) return;
    this.place.dataset.width = String(width);
    this.place.replaceChildren(this.chart(this.roof, width));
  }

  private roofOf(view: View): Roof | null {
    this.view = view;
    const flops = totalOf(view, "peak_gflops_per_second");
    const bytes = totalOf(view, "peak_gigabytes_per_second");
    return typeof flops === "number" && typeof bytes === "number" ? { flops, bytes } : null;
  }

  private chart(roof: Roof | null, full: number): SVGElement {
    const [x0, x1] = decades([
      ...this.points.map((point) => point.x),
      ...(roof ? [roof.flops / roof.bytes] : []),
    ]);
    const [y0, y1] = decades([
      ...this.points.map((point) => point.y),
      ...(roof ? [roof.flops] : []),
    ]);
    const x = (value: number): number =>
      LEFT + ((Math.log10(value) - x0) / (x1 - x0)) * (full - LEFT - RIGHT);
    const y = (value: number): number =>
      HEIGHT - BOTTOM - ((Math.log10(value) - y0) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM);
    const root = svg("svg", {
      viewBox: `0 0 ${full} ${HEIGHT}`,
      class: "chart",
      role: "group",
      "aria-label": "Roofline. Each operator is a point: Tab moves to the next one.",
    });
    for (let power = x0; power <= x1; power++)
      root.append(
        svg("line", {
          x1: x(10 ** power),
          x2: x(10 ** power),
          y1: TOP,
          y2: HEIGHT - BOTTOM,
          class: "grid",
        }),
        svg(
          "text",
          { x: x(10 ** power), y: HEIGHT - BOTTOM + 16, class: "tick", "text-anchor": "middle" },
          short(10 ** power),
        ),
      );
    for (let power = y0; power <= y1; power++)
      root.append(
        svg("line", {
          x1: LEFT,
          x2: full - RIGHT,
          y1: y(10 ** power),
          y2: y(10 ** power),
          class: "grid",
        }),
        svg(
          "text",
          { x: LEFT - 8, y: y(10 ** power) + 4, class: "tick", "text-anchor": "end" },
          short(10 ** power),
        ),
      );
    root.append(
      svg(
        "text",
        { x: (LEFT + full - RIGHT) / 2, y: HEIGHT - 8, class: "tick", "text-anchor": "middle" },
        "FLOPs for a byte moved",
      ),
      svg(
        "text",
        {
          transform: `translate(16 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`,
          class: "tick",
          "text-anchor": "middle",
        },
        "GFLOPS",
      ),
    );
    if (roof) {
      const ridge = roof.flops / roof.bytes;
      const left = Math.max(10 ** x0, 10 ** y0 / roof.bytes); // where the slope enters
      root.append(
        svg("polyline", {
          class: "roof",
          points: [
            [left, left * roof.bytes],
            [ridge, roof.flops],
            [10 ** x1, roof.flops],
          ]
            .map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`)
            .join(" "),
          "data-ridge": ridge,
        }),
        svg(
          "text",
          { x: full - RIGHT - 4, y: y(roof.flops) - 6, class: "tick", "text-anchor": "end" },
          `${short(roof.flops)} GFLOPS`,
        ),
      );
    }
    const taken: [number, number, number][] = []; // labels: left, right, y
    const labelled = [...this.points].sort((a, b) => b.part - a.part).slice(0, LABELS);
    for (const point of this.points) root.append(this.dot(point, x(point.x), y(point.y)));
    for (const point of labelled) {
      const [top, width, gap] = [
        y(point.y) + 4,
        point.name.length * 6,
        7 + 10 * Math.sqrt(point.part),
      ];
      const left =
        x(point.x) + gap + width > full - RIGHT ? x(point.x) - gap - width : x(point.x) + gap;
      if (taken.some(([a, b, at]) => left < b && a < left + width && Math.abs(at - top) < 13))
        continue;
      taken.push([left, left + width, top]);
      root.append(
        svg(
          "text",
          left < x(point.x)
            ? { x: left + width, y: top, class: "label", "text-anchor": "end" }
            : { x: left, y: top, class: "label" },
          point.name,
        ),
      );
    }
    return root;
  }

  private dot(point: Point, x: number, y: number): SVGElement {
    const text = this.sentence(point);
    const dot = svg(
      "circle",
      {
        cx: x.toFixed(1),
        cy: y.toFixed(1),
        r: (4 + 10 * Math.sqrt(point.part)).toFixed(1),
        class: "dot",
        tabindex: 0,
        role: "img",
        "aria-label": text,
        "data-name": point.name,
        "data-x": point.x,
        "data-y": point.y,
      },
      svg("title", {}, text),
    );
    for (const event of ["focus", "pointerenter", "click"])
      dot.addEventListener(event, () => this.describe(point, this.view));
    return dot;
  }

  private sentence(point: Point): string {
    const share = cellOf(this.view, point.row, "roof_percent") as number | null;
    return `${point.name}: ${short(point.y)} GFLOPS at ${short(point.x)} FLOPs a byte, ${format.timeNs(numberOf(this.view, point.row, "time_ns"))}${share === null ? "" : `, ${format.share(share)} of the roof, bound by ${cellOf(this.view, point.row, "bound")}`}`;
  }

  private choose(row: Cell[]): void {
    const point = this.points.find((one) => one.row === row);
    if (point)
      (
        this.element.querySelector(
          `circle[data-name="${CSS.escape(point.name)}"]`,
        ) as SVGElement | null
      )?.focus();
  }

  private describe(point: Point | null, view: View): void {
    this.details.textContent = point
      ? this.sentence(point)
      : `${this.points.length} of ${view.row_count} operators with FLOPs; the size of a point is its time.`;
  }
}
