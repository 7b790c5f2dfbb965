// SPDX-License-Identifier: Apache-2.0
/**
 * What is below the timeline: of the selected span or part of the time, its numbers and the totals
 * of what lies in it.
 */
import { UNFINISHED, type Cell, type Series, type Spans, type Table, type Trace } from "./data";
import { el } from "./dom";
import * as format from "./format";
import type { Lane } from "./lanes";
import { linked, placeOf, type Place } from "./links";
import { stackLanes } from "./part";
import { firstAfter, lowerBound, type Row, type Window } from "./rows";
import type { Selection } from "./selection";
import { DataTable } from "./table";

const MOST_LINKS = 12;

/** `go` shows another span. */
export function describeSpan(
  trace: Trace,
  lanes: Lane[],
  place: Place,
  go: (place: Place) => void,
): HTMLElement[] {
  const { lane, id } = place;
  const { ranges, head } = trace;
  const inside =
    lane.spans === ranges || lane.samples || lane.kind === "steps"
      ? totalsInside(trace, lanes, place)
      : null;
  const list = el(
    "dl.facts",
    {},
    ...factsOf(trace, place, inside?.direct ?? 0).map(([title, text]) =>
      el("div", {}, el("dt", {}, title), el("dd", { "data-fact": title }, text)),
    ),
  );
  for (const link of (lane.spans === ranges ? linked(trace, lanes, id) : []).slice(0, MOST_LINKS)) {
    const other = link.from === id ? link.to : link.from;
    list.append(
      el(
        "div",
        {},
        el("dt", {}, link.title),
        el(
          "dd",
          {},
          el(
            "button.link",
            {
              type: "button",
              onclick: () => {
                const there = placeOf(trace, lanes, other);
                if (there) go(there);
              },
            },
            head.texts[ranges.name[other]],
          ),
        ),
      ),
    );
  }
  const left = el("div.facts-box", {}, el("h2", {}, head.texts[lane.spans.name[id]]), list);
  if (!inside || inside.table.rows.length === 0) return [left];
  return [
    left,
    el(
      "div.totals-box",
      {},
      el("h3", {}, "Inside it"),
      new DataTable(inside.table, { label: "Totals inside the selection" }).element,
    ),
  ];
}

/** The time in which any span of these lanes runs, within a window. */
function busyTime(lanes: Lane[], { from, to }: Window): number {
  const spans: [number, number][] = [];
  for (const { spans: all, rows } of lanes)
    for (const row of rows)
      for (let i = firstAfter(all, row, from); i < row.length && all.start[row[i]] < to; i++)
        spans.push([Math.max(from, all.start[row[i]]), Math.min(to, all.end[row[i]])]);
  spans.sort((a, b) => a[0] - b[0]);
  let sum = 0;
  let until = from;
  for (const [begin, end] of spans) {
    sum += Math.max(0, end - Math.max(until, begin));
    until = Math.max(until, end);
  }
  return sum;
}

/** The greatest value of a counter within a window: what it had before, or gets in it. */
function greatestIn({ at, value }: Series, { from, to }: Window): number {
  let i = Math.max(0, lowerBound(at, from + 1) - 1);
  let most = -Infinity;
  for (; i < at.length && at[i] < to; i++) most = Math.max(most, value[i]);
  return most;
}

/** GPUs and memory in the window, a fact each. */
function resources(lanes: Lane[], window: Window): [string, string][] {
  const facts: [string, string][] = [];
  const streams = lanes.filter((lane) => lane.detail === "GPU" && lane.thread < 0);
  if (streams.length > 0) {
    const busy = busyTime(streams, window);
    facts.push([
      "GPU busy",
      `${format.timeNs(busy)}, ${format.percent(busy, window.to - window.from)}`,
    ]);
  }
  for (const { series, title } of lanes) {
    const most = series?.isBytes ? greatestIn(series, window) : -Infinity;
    if (most > -Infinity) facts.push([`Most of ${title}`, format.bytes(most)]);
  }
  return facts;
}

export function describeArea(
  trace: Trace,
  selection: Selection,
  act: { zoom: () => void; clear: () => void },
): HTMLElement[] {
  const { lanes, window } = selection;
  const inside = totals(lanes, window.from, window.to, -1, trace.head.texts);
  const facts: [string, string][] = [
    ["Begin", format.timeNs(window.from)],
    ["End", format.timeNs(window.to)],
    ["Length", format.timeNs(window.to - window.from)],
    ...(selection.lane ? [["Where", selection.lane.title] as [string, string]] : []),
    ...resources(lanes, window),
  ];
  const button = (text: string, onclick: () => void): HTMLElement =>
    el("button", { type: "button", onclick }, text);
  return [
    el(
      "div.facts-box",
      {},
      el("h2", {}, selection.area ? "Selected time" : "Selected lane"),
      el(
        "dl.facts",
        {},
        ...facts.map(([title, text]) =>
          el("div", {}, el("dt", {}, title), el("dd", { "data-fact": title }, text)),
        ),
      ),
      el(
        "p.actions",
        {},
        ...(stackLanes(lanes, false).length + stackLanes(lanes, true).length > 0
          ? [el("a", { href: "#flame" }, "Flame graph of it"), " "]
          : []),
        button("Zoom to it", act.zoom),
        " ",
        button("Clear", act.clear),
      ),
    ),
    el(
      "div.totals-box",
      {},
      el("h3", {}, "Ranges in it"),
      new DataTable(inside.table, { label: "Totals of the selected time" }).element,
    ),
  ];
}

function factsOf(trace: Trace, { lane, id }: Place, children: number): [string, string][] {
  const { ranges, head } = trace;
  const start = lane.spans.start[id];
  const end = lane.spans.end[id];
  const facts: [string, string][] = [["Duration", format.timeNs(end - start)]];
  if (lane.kind === "spans") facts.push(["Self", format.timeNs(end - start - children)]);
  facts.push(["Start", format.timeNs(start)], ["Where", lane.title]);
  if (lane.samples?.spans.place[id])
    facts.push(["Place", head.texts[lane.samples.spans.place[id]]]);
  if (lane.spans !== ranges) return facts;
  for (const [title, column] of [
    ["Inputs", ranges.shapes],
    ["Module", ranges.module],
    ["Called from", ranges.stack],
  ] as const)
    if (column[id]) facts.push([title, head.texts[column[id]]]);
  if (id < ranges.ranges && ranges.flags[id] & UNFINISHED)
    facts.push(["Unfinished", "its end is not in the trace"]);
  return facts;
}

/** Of a span: what lies below it in its lane; of a step: all that its process did. */
function totalsInside(
  trace: Trace,
  lanes: Lane[],
  { lane, row, id }: Place,
): { table: Table; direct: number } {
  const isStep = lane.kind === "steps";
  const mine = lanes.filter((one) =>
    isStep ? one.process === lane.process && one.kind === "spans" : one === lane,
  );
  return totals(
    mine,
    lane.spans.start[id],
    lane.spans.end[id],
    isStep ? -1 : row,
    trace.head.texts,
  );
}

type ByName = Map<number, [count: number, total: number, self: number]>;

/** What lies between two moments, by name: below a row of one lane, or in all rows. */
function totals(
  lanes: Lane[],
  from: number,
  to: number,
  below: number,
  texts: string[],
): { table: Table; direct: number } {
  const byName: ByName = new Map();
  let direct = 0;
  for (const lane of lanes) {
    lane.rows.forEach((row, r) => {
      if (r <= below) return;
      const all = add(lane.spans, row, from, to, byName);
      if (r === below + 1) direct += all;
      // What the row below takes is not the own time of what it lies in.
      const next = lane.rows[r + 1];
      if (next && lane.kind === "spans") subtract(lane.spans, row, next, from, to, byName);
    });
  }
  const rows: Cell[][] = Array.from(byName, ([name, [count, total, self]]): Cell[] => [
    texts[name],
    count,
    total,
    self,
    total / count,
  ]);
  rows.sort((a, b) => (b[3] as number) - (a[3] as number));
  return {
    direct,
    table: {
      columns: [
        { key: "name", title: "Name", kind: "text" },
        { key: "count", title: "Count", kind: "count" },
        { key: "total_ns", title: "Total", kind: "time" },
        { key: "self_ns", title: "Self", kind: "time" },
        { key: "mean_ns", title: "Mean", kind: "time" },
      ],
      rows,
      row_count: rows.length,
      microseconds: false,
    },
  };
}

/** Adds what of a row's spans lies between two moments; returns its length. */
function add(spans: Spans, row: Row, from: number, to: number, byName: ByName): number {
  let all = 0;
  for (let i = firstAfter(spans, row, from); i < row.length && spans.start[row[i]] < to; i++) {
    const id = row[i];
    const length = Math.min(to, spans.end[id]) - Math.max(from, spans.start[id]);
    const entry = byName.get(spans.name[id]) ?? [0, 0, 0];
    entry[0]++;
    entry[1] += length;
    entry[2] += length;
    byName.set(spans.name[id], entry);
    all += length;
  }
  return all;
}

/** Takes the time of spans of the row below from what they lie in. */
function subtract(
  spans: Spans,
  row: Row,
  next: Row,
  from: number,
  to: number,
  byName: ByName,
): void {
  let parent = firstAfter(spans, row, from);
  for (let i = firstAfter(spans, next, from); i < next.length && spans.start[next[i]] < to; i++) {
    const id = next[i];
    while (parent < row.length && spans.end[row[parent]] < spans.end[id]) parent++;
    if (parent >= row.length || spans.start[row[parent]] > spans.start[id]) continue;
    const entry = byName.get(spans.name[row[parent]]);
    if (entry) entry[2] -= Math.min(to, spans.end[id]) - Math.max(from, spans.start[id]);
  }
}
