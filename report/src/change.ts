// SPDX-License-Identifier: Apache-2.0
/** Two traces compared: colours by change, and what a node was before. */
import { isDark } from "./colours";
import type { Before, Cell, Trace, Tree, View } from "./data";
import { el } from "./dom";
import * as format from "./format";
import { packed } from "./raster";
import { cellOf } from "./reader";

export type Side = "a" | "b";

const known = new WeakMap<Tree, Record<Side, Float64Array>>();

/** Times of a step or a run, of one side, by node. */
export function sideTotals(tree: Tree, side: Side): Float64Array {
  const { before } = tree;
  if (!before) return tree.total;
  let totals = known.get(tree);
  if (!totals)
    known.set(
      tree,
      (totals = {
        a: before.total.map((ns) => ns / before.aUnits),
        b: tree.total.map((ns) => ns / before.bUnits),
      }),
    );
  return totals[side];
}

/**
 * Which rows of `sonde diff` the nodes of a tree are part of. Counted functions have the rows of
 * functions to themselves.
 */
function rowsOf(trace: Trace, tree: Tree): View | undefined {
  const counted = trace.trees.some((one) => one.key === "diff-functions");
  const by = {
    "diff-ranges": "ops",
    "diff-modules": "modules",
    "diff-functions": "functions",
    "diff-samples": counted ? "" : "functions",
  }[tree.key];
  return trace.views.find((entry) => entry.document.view === "diff" && entry.group === by)
    ?.document;
}

/** "file.py:3(f)" without the line, which may be another on the other side. */
const withoutLine = (name: string): string => name.replace(/^([^(]*?):\d+\(/, "$1(");

/**
 * What `sonde diff` has the row of a node under: a module's path, a function with its file's name,
 * or its own name.
 */
function rowNames(trace: Trace, tree: Tree): string[] {
  const { texts } = trace.head;
  const path: string[] = [];
  return Array.from(tree.name, (number, i) => {
    const name = texts[number];
    if (tree.key === "diff-modules")
      return (path[tree.depth[i]] =
        tree.depth[i] > 0 ? `${path[tree.depth[i] - 1]}.${name}` : name);
    const file = tree.place[i] ? texts[tree.place[i]].replace(/:\d+$/, "").split("/").pop()! : "";
    return file && tree.key !== "diff-ranges" ? `${file}(${name})` : name;
  });
}

interface Judged {
  view: View;
  row: (Cell[] | undefined)[]; // by node
  amount: Float32Array; // by node: from -1 (half as long, or gone) to 1 (twice as long, or new); 0: nothing is known to differ
}
const judged = new WeakMap<Tree, Judged>();

/**
 * How much the row differs as far as it is no noise. What samples found on one side alone may be
 * chance.
 */
function amountOf(view: View, row: Cell[], isSampled: boolean): number {
  const verdict = cellOf(view, row, "verdict");
  if (verdict === "new" || verdict === "gone") return isSampled ? 0 : verdict === "new" ? 1 : -1;
  if (verdict !== "slower" && verdict !== "faster") return 0;
  const changed = cellOf(view, row, "change_percent");
  return typeof changed === "number" && changed > -100
    ? Math.max(-1, Math.min(1, Math.log2(1 + changed / 100)))
    : verdict === "slower"
      ? 1
      : -1;
}

function judge(trace: Trace, tree: Tree): Judged | null {
  const view = rowsOf(trace, tree);
  if (!view) return null;
  let found = judged.get(tree);
  if (!found) {
    const byName = new Map(
      view.rows.map((row) => [withoutLine(String(cellOf(view, row, "name"))), row]),
    );
    const row = rowNames(trace, tree).map((name) => byName.get(name));
    found = {
      view,
      row,
      amount: Float32Array.from(row, (one) =>
        one ? amountOf(view, one, tree.key === "diff-samples") : 0,
      ),
    };
    judged.set(tree, found);
  }
  return found;
}

/** Red: longer, blue: shorter; as pale as the change is small. Dark text is read on each. */
function colourOf(amount: number): [red: number, green: number, blue: number] {
  const [neutral, red, blue] = isDark()
    ? [
        [156, 160, 168],
        [226, 122, 108],
        [112, 158, 226],
      ]
    : [
        [226, 228, 232],
        [240, 128, 112],
        [120, 168, 240],
      ];
  const part = Math.sqrt(Math.abs(amount)); // a change of 5 % is to be seen
  const end = amount > 0 ? red : blue;
  return neutral.map((one, i) => Math.round(one + (end[i] - one) * part)) as [
    number,
    number,
    number,
  ];
}

/**
 * A frame has a colour as far as the verdict on its row goes: what may be noise is grey, whatever
 * its two times are.
 */
export const changeColour = (trace: Trace, tree: Tree, id: number): number =>
  packed(...colourOf(judge(trace, tree)?.amount[id] ?? 0));

export function changeLegend(trace: Trace, before: Before): HTMLElement[] {
  const entry = (amount: number, text: string): HTMLElement => {
    const swatch = el("i", { "aria-hidden": "true" });
    swatch.style.background = `rgb(${colourOf(amount).join(" ")})`;
    return el("span", {}, swatch, text);
  };
  const files = (names: string[] | undefined): string =>
    (names ?? []).map((name) => name.split("/").pop()).join(", ");
  return [
    entry(1, "twice as long, or new"),
    entry(0.07, "5 % longer"),
    entry(0, "the same, unclear or not judged"),
    entry(-0.07, "5 % shorter"),
    entry(-1, "half as long, or gone"),
    el(
      "span",
      {},
      `Colour: what sonde diff says of its row, by self time. Times of a ${before.unit}. A: ${files(trace.head.a)} · B: ${files(trace.head.b)}`,
    ),
  ];
}

const percent = (value: number): string => `${value > 0 ? "+" : ""}${format.fixed(value, 1)} %`;

/** What `sonde diff` says of the row of this node, with the margin of its change. */
function verdictOf(trace: Trace, tree: Tree, id: number): [string, string][] {
  const known = judge(trace, tree);
  const row = known?.row[id];
  if (!known || !row) return [];
  const [verdict, changed, low, high] = [
    "verdict",
    "change_percent",
    "low_percent",
    "high_percent",
  ].map((key) => cellOf(known.view, row, key));
  const range =
    typeof low === "number" && typeof high === "number"
      ? `, 95 % between ${percent(low)} and ${percent(high)}`
      : "";
  return [
    [
      "Self time of all",
      `${verdict}${typeof changed === "number" ? ` ${percent(changed)}` : ""}${range}`,
    ],
  ];
}

export function changeFacts(trace: Trace, tree: Tree, id: number): [string, string][] {
  const before = tree.before!;
  const [a, b] = [sideTotals(tree, "a")[id], sideTotals(tree, "b")[id]];
  const calls = (count: number, units: number): string =>
    format.fixed(count / units, 2).replace(/\.?0+$/, "");
  return [
    ["Before (A)", format.timeNs(a)],
    ["After (B)", format.timeNs(b)],
    [
      "Change",
      a > 0 && b > 0
        ? `${b >= a ? "+" : "−"}${format.timeNs(Math.abs(b - a))}, ${percent((100 * (b - a)) / a)}`
        : a > 0
          ? "gone"
          : "new",
    ],
    [
      "Self",
      `${format.timeNs(before.self[id] / before.aUnits)} → ${format.timeNs(tree.self[id] / before.bUnits)}`,
    ],
    [
      tree.count_title.charAt(0).toUpperCase() + tree.count_title.slice(1),
      `${calls(before.count[id], before.aUnits)} → ${calls(tree.count[id], before.bUnits)}`,
    ],
    ...verdictOf(trace, tree, id),
  ];
}
