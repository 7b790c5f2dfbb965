// SPDX-License-Identifier: Apache-2.0
/**
 * Tables of the report for the chosen part of the trace: the columns that follow from what is on the timeline, by the
 * rules of `sonde report`. What began before the part or ends after it counts with what lies in it.
 */
import { FUNCTION, type Cell, type Column, type Table, type Trace, type View } from "./data";
import type { Lane } from "./lanes";
import { FOLDED, PATH_SHIFT, type Paths } from "./paths";
import { firstAfter, type Window } from "./rows";
import { ON_CPU } from "./samples";
import type { Selection } from "./selection";

interface Sums {
  name: number;
  count: number;
  total: number;
  self: number;
  least: number;
  most: number;
  text?: string; // in place of its name
}

class ByName extends Map<number, Sums> {
  of(name: number): Sums {
    let one = this.get(name);
    if (!one)
      this.set(name, (one = { name, count: 0, total: 0, self: 0, least: Infinity, most: 0 }));
    return one;
  }

  add(name: number, length: number): void {
    const one = this.of(name);
    one.count++;
    one.total += length;
    one.least = Math.min(one.least, length);
    one.most = Math.max(one.most, length);
  }
}

/** Of each name, by its number. */
class SumsByName {
  readonly self: Float64Array;
  readonly total: Float64Array;
  readonly count: Float64Array;
  readonly least: Float64Array;
  readonly most: Float64Array;

  constructor(names: number) {
    this.self = new Float64Array(names);
    this.total = new Float64Array(names);
    this.count = new Float64Array(names);
    this.least = new Float64Array(names).fill(Infinity);
    this.most = new Float64Array(names);
  }

  rows(): Sums[] {
    const rows: Sums[] = [];
    this.count.forEach((count, name) => {
      if (count > 0)
        rows.push({
          name,
          count,
          total: this.total[name],
          self: this.self[name],
          least: this.least[name],
          most: this.most[name],
        });
    });
    return rows;
  }
}

/** What of a lane's ranges lies in the window. An operator that is the only child of one of its own name is one with it. */
function addRanges(
  lane: Lane,
  window: Window,
  paths: Paths,
  sums: SumsByName,
  leftOut: Uint8Array,
): void {
  const { start, end, name } = lane.spans;
  const { self, total, count, least, most } = sums;
  const { rows, found } = paths.of(lane);
  for (const [r, row] of rows.entries())
    for (let i = firstAfter(lane.spans, row, window.from); i < row.length; i++) {
      const id = row[i];
      if (start[id] >= window.to) break;
      const own = name[id];
      if (leftOut[own]) continue;
      const length = Math.min(window.to, end[id]) - Math.max(window.from, start[id]);
      const parent = paths.parent[found[r][i] >>> PATH_SHIFT];
      self[own] += length;
      if (parent >= 0) self[paths.name[parent]] -= length;
      if (found[r][i] & FOLDED) continue;
      count[own]++;
      total[own] += length;
      if (length < least[own]) least[own] = length;
      if (length > most[own]) most[own] = length;
    }
}

/** What torch's tables leave out (src/model/ops): its time is that of what called it. */
const LEFT_OUT = ["aten::is_leaf", "aten::output_nr", "aten::_version"];

/** Steps are one row, as torch has them. */
function mergeSteps(all: Sums[], texts: string[]): Sums[] {
  const rows: Sums[] = [];
  let step: Sums | null = null;
  for (const one of all) {
    if (!/^ProfilerStep#\d+$/.test(texts[one.name])) rows.push(one);
    else if (!step) rows.push((step = { ...one, text: "ProfilerStep*" }));
    else {
      step.count += one.count;
      step.total += one.total;
      step.self += one.self;
      step.least = Math.min(step.least, one.least);
      step.most = Math.max(step.most, one.most);
    }
  }
  return rows;
}

const isCalls = (lane: Lane, trace: Trace): boolean =>
  lane.spans === trace.ranges &&
  lane.rows.length > 0 &&
  (trace.ranges.flags[lane.rows[0][0]] & FUNCTION) !== 0;

type Getter = (one: Sums, whole: number) => number;

/** Columns of the view that are known of a part, and the values of each row. */
function table(
  view: View,
  names: string[],
  getters: Record<string, Getter>,
  rows: Sums[],
  whole: number,
  texts: string[],
  sort: string,
): Table {
  const columns = view.columns.filter(
    (column) => names.includes(column.key) || column.key in getters,
  );
  const by = getters[sort];
  rows.sort((a, b) => by(b, whole) - by(a, whole));
  return {
    columns,
    rows: rows.map((one) =>
      columns.map(
        (column): Cell =>
          names.includes(column.key)
            ? (one.text ?? texts[one.name])
            : getters[column.key](one, whole),
      ),
    ),
    row_count: rows.length,
    microseconds: view.microseconds,
  };
}

function opsOf(view: View, trace: Trace, { lanes, window, ranges }: Selection): Table {
  const sums = new SumsByName(trace.head.texts.length);
  const leftOut = Uint8Array.from(trace.head.texts, (text) => (LEFT_OUT.includes(text) ? 1 : 0));
  for (const lane of lanes)
    if (lane.kind === "spans" && lane.thread >= 0 && !lane.samples && !isCalls(lane, trace))
      addRanges(lane, window, ranges, sums, leftOut);
  const rows = mergeSteps(sums.rows(), trace.head.texts);
  const whole = rows.reduce((sum, one) => sum + one.self, 0);
  return table(
    view,
    ["key"],
    {
      self_cpu_percent: (one, all) => (100 * one.self) / all,
      self_cpu_time_total: (one) => one.self / 1000,
      total_cpu_percent: (one, all) => (100 * one.total) / all,
      cpu_time_total: (one) => one.total / 1000,
      cpu_time: (one) => one.total / one.count / 1000,
      cpu_time_min: (one) => one.least / 1000,
      cpu_time_max: (one) => one.most / 1000,
      count: (one) => one.count,
    },
    rows,
    whole,
    trace.head.texts,
    "self_cpu_time_total",
  );
}

function kernelsOf(view: View, trace: Trace, { lanes, window }: Selection): Table {
  const sums = new ByName();
  for (const lane of lanes)
    if (lane.kind === "spans" && lane.thread < 0)
      for (const row of lane.rows)
        for (let i = firstAfter(lane.spans, row, window.from); i < row.length; i++) {
          const { start, end, name } = lane.spans;
          if (start[row[i]] >= window.to) break;
          sums.add(
            name[row[i]],
            Math.min(window.to, end[row[i]]) - Math.max(window.from, start[row[i]]),
          );
        }
  const rows = [...sums.values()];
  return table(
    view,
    ["name"],
    {
      total_percent: (one, all) => (100 * one.total) / all,
      total_ns: (one) => one.total,
      count: (one) => one.count,
      mean_ns: (one) => Math.floor(one.total / one.count),
      min_ns: (one) => one.least,
      max_ns: (one) => one.most,
    },
    rows,
    rows.reduce((sum, one) => sum + one.total, 0),
    trace.head.texts,
    "total_ns",
  );
}

/** ns of each stack in the window, on the CPU alone or all. */
function stackTimes(
  trace: Trace,
  threads: Set<number>,
  window: Window,
  busy: boolean,
): Float64Array {
  const { samples, stacks } = trace;
  const times = new Float64Array(stacks.caller.length + 1);
  for (let i = 0; i < samples.count; i++) {
    if (!threads.has(samples.thread[i]) || (busy && !(samples.state[i] & ON_CPU))) continue;
    const from = Math.max(window.from, samples.end[i] - samples.length[i]);
    const length = Math.min(window.to, samples.end[i]) - from;
    if (length > 0) times[samples.stack[i]] += length;
  }
  return times;
}

/** The interpreter's own functions of an import: what is imported has their time. */
const isImport = (place: string | undefined): boolean =>
  place?.includes("<frozen importlib._bootstrap") ?? false;

function sampledOf(view: View, trace: Trace, { lanes, window }: Selection): Table | null {
  const { stacks, head } = trace;
  const threadsOf = (of: Lane[]): Set<number> =>
    new Set(of.flatMap((lane) => (lane.samples ? [lane.thread] : [])));
  const at = (key: string): number => view.columns.findIndex((column) => column.key === key);
  // The table of the whole has waiting threads in it or not: this one is like it.
  const all = new Set(head.threads.map((_, i) => i));
  const sum = (times: Float64Array): number => times.reduce((a, b, i) => (i > 0 ? a + b : a), 0);
  const told = view.rows.reduce((ns, row) => ns + Number(row[at("self_ns")]), 0);
  const everything = { from: -Infinity, to: Infinity };
  const busy =
    Math.abs(sum(stackTimes(trace, all, everything, true)) - told) <
    Math.abs(sum(stackTimes(trace, all, everything, false)) - told);
  const times = stackTimes(trace, threadsOf(lanes), window, busy);
  const sums = new Map<string, { name: number; place: number; self: number; total: number }>();
  for (let stack = 1; stack < times.length; stack++) {
    if (times[stack] === 0) continue;
    const seen = new Set<string>();
    let isSelf = true;
    for (let frame = stack; frame > 0; frame = stacks.caller[frame - 1]) {
      const [name, place] = [stacks.name[frame - 1], stacks.place[frame - 1]];
      if (isImport(head.texts[place]) && stacks.caller[frame - 1] > 0) continue;
      const key = `${name}/${place}`;
      const one = sums.get(key) ?? { name, place, self: 0, total: 0 };
      if (isSelf) one.self += times[stack];
      isSelf = false;
      if (!seen.has(key)) one.total += times[stack];
      seen.add(key);
      sums.set(key, one);
    }
  }
  const whole = sum(times);
  const columns: Column[] = [
    ...view.columns.filter((column) =>
      ["self_ns", "self_share", "total_ns", "total_share", "function"].includes(column.key),
    ),
    { key: "place", title: "Where", kind: "text" },
  ];
  const rows = [...sums.values()].sort((a, b) => b.self - a.self || b.total - a.total);
  const values: Record<string, (one: (typeof rows)[number]) => Cell> = {
    self_ns: (one) => one.self,
    self_share: (one) => (100 * one.self) / whole,
    total_ns: (one) => one.total,
    total_share: (one) => (100 * one.total) / whole,
    function: (one) => head.texts[one.name],
    place: (one) => head.texts[one.place] ?? "",
  };
  return {
    columns,
    rows: rows.map((one) => columns.map((column) => values[column.key](one))),
    row_count: rows.length,
    microseconds: view.microseconds,
  };
}

/** Rows that say when they began, and for how long: those of the window. Null: they do not say it. */
export function rowsInPart<T extends Table>(of: T, { window }: Selection): T | null {
  const at = (key: string): number => of.columns.findIndex((column) => column.key === key);
  const [start, length] = [at("start_ns"), Math.max(at("duration_ns"), at("span_ns"))];
  if (start < 0 || length < 0) return null;
  const rows = of.rows.filter((row) => {
    const begin = Number(row[start]);
    return begin < window.to && begin + Number(row[length]) > window.from;
  });
  return { ...of, rows, row_count: rows.length };
}

/** The view's table of the chosen part. Null: it is of the whole trace alone. */
export function tableOfPart(
  view: View,
  group: string,
  trace: Trace,
  part: Selection,
): Table | null {
  if (view.view === "ops" && group === "") return opsOf(view, trace, part);
  if (view.view === "kernels" && group === "") return kernelsOf(view, trace, part);
  if (view.view === "functions" && view.columns.some((column) => column.key === "self_share"))
    return sampledOf(view, trace, part);
  return rowsInPart(view, part);
}
