// SPDX-License-Identifier: Apache-2.0
/** Two traces compared: colours by change, and what a node was before. */
import { isDark } from "./colours";
import type { Before, Trace, Tree, View } from "./data";
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
  if (!totals) known.set(tree, (totals = { a: before.total.map((ns) => ns / before.aUnits), b: tree.total.map((ns) => ns / before.bUnits) }));
  return totals[side];
}

/** From -1 (half as long, or gone) to 1 (twice as long, or new). */
function change(tree: Tree, id: number): number {
  const a = sideTotals(tree, "a")[id];
  const b = sideTotals(tree, "b")[id];
  if (a <= 0 || b <= 0) return a === b ? 0 : a <= 0 ? 1 : -1;
  return Math.max(-1, Math.min(1, Math.log2(b / a)));
}

/** Red: longer, blue: shorter; as pale as the change is small. Dark text is read on each. */
function colourOf(amount: number): [red: number, green: number, blue: number] {
  const [neutral, red, blue] = isDark() ? [[156, 160, 168], [226, 122, 108], [112, 158, 226]] : [[226, 228, 232], [240, 128, 112], [120, 168, 240]];
  const part = Math.sqrt(Math.abs(amount)); // a change of 5 % is to be seen
  const end = amount > 0 ? red : blue;
  return neutral.map((one, i) => Math.round(one + (end[i] - one) * part)) as [number, number, number];
}

export const changeColour = (tree: Tree, id: number): number => packed(...colourOf(change(tree, id)));

export function changeLegend(trace: Trace, before: Before): HTMLElement[] {
  const entry = (amount: number, text: string): HTMLElement => {
    const swatch = el("i", { "aria-hidden": "true" });
    swatch.style.background = `rgb(${colourOf(amount).join(" ")})`;
    return el("span", {}, swatch, text);
  };
  const files = (names: string[] | undefined): string => (names ?? []).map((name) => name.split("/").pop()).join(", ");
  return [entry(1, "twice as long, or new"), entry(0.07, "5 % longer"), entry(0, "the same"), entry(-0.07, "5 % shorter"), entry(-1, "half as long, or gone"), el("span", {}, `Times of a ${before.unit}. A: ${files(trace.head.a)} · B: ${files(trace.head.b)}`)];
}

const percent = (value: number): string => `${value > 0 ? "+" : ""}${format.fixed(value, 1)} %`;

/** What `sonde diff` says of the row of this name. */
function verdictOf(trace: Trace, tree: Tree, name: string): [string, string][] {
  const by = { "diff-ranges": "ops", "diff-functions": "functions" }[tree.key];
  const view: View | undefined = trace.views.find((entry) => entry.document.view === "diff" && entry.group === by)?.document;
  const row = view?.rows.find((one) => cellOf(view, one, "name") === name);
  if (!view || !row) return [];
  const [verdict, changed, low, high] = ["verdict", "change_percent", "low_percent", "high_percent"].map((key) => cellOf(view, row, key));
  const range = typeof low === "number" && typeof high === "number" ? `, 95 % between ${percent(low)} and ${percent(high)}` : "";
  return [["Self time of all", `${verdict}${typeof changed === "number" ? ` ${percent(changed)}` : ""}${range}`]];
}

export function changeFacts(trace: Trace, tree: Tree, id: number, name: string): [string, string][] {
  const before = tree.before!;
  const [a, b] = [sideTotals(tree, "a")[id], sideTotals(tree, "b")[id]];
  const calls = (count: number, units: number): string => format.fixed(count / units, 2).replace(/\.?0+$/, "");
  return [
    ["Before (A)", format.timeNs(a)], ["After (B)", format.timeNs(b)],
    ["Change", a > 0 && b > 0 ? `${b >= a ? "+" : "−"}${format.timeNs(Math.abs(b - a))}, ${percent((100 * (b - a)) / a)}` : a > 0 ? "gone" : "new"],
    ["Self", `${format.timeNs(before.self[id] / before.aUnits)} → ${format.timeNs(tree.self[id] / before.bUnits)}`],
    [tree.count_title.charAt(0).toUpperCase() + tree.count_title.slice(1), `${calls(before.count[id], before.aUnits)} → ${calls(tree.count[id], before.bUnits)}`],
    ...verdictOf(trace, tree, name),
  ];
}
