// SPDX-License-Identifier: Apache-2.0
/** A table of all that a search matches: every name on the timeline and in the trees, with what it took. */
import type { Cell, Table, Trace } from "./data";
import { el, searchBox, type Part } from "./dom";
import type { Lane } from "./lanes";
import { matchTexts } from "./rows";
import { DataTable } from "./table";

/** Leads to the table of what is searched. */
export const matchesLink = (search: string): HTMLElement =>
  el("a", { href: `#matches?${new URLSearchParams({ search }).toString()}` }, "all of them");

type Sums = Map<
  string,
  { name: number; where: string; count: number; total: number; most: number; first: number }
>;

function addLanes(sums: Sums, lanes: Lane[], matches: Uint8Array): void {
  for (const lane of lanes) {
    const { spans } = lane;
    for (const row of lane.rows)
      for (const id of row) {
        const name = spans.name[id];
        if (matches[name] !== 1) continue;
        const key = `${name}/${lane.title}`;
        const length = spans.end[id] - spans.start[id];
        const one = sums.get(key) ?? {
          name,
          where: lane.title,
          count: 0,
          total: 0,
          most: 0,
          first: Infinity,
        };
        one.count++;
        one.total += length;
        one.most = Math.max(one.most, length);
        one.first = Math.min(one.first, spans.start[id]);
        sums.set(key, one);
      }
  }
}

/** Names that are in trees alone: functions that were counted, modules, what allocates. */
function addTrees(rows: Cell[][], trace: Trace, seen: Set<number>, matches: Uint8Array): void {
  for (const tree of trace.trees) {
    const sums = new Map<number, [count: number, self: number]>();
    tree.name.forEach((name, i) => {
      if (matches[name] !== 1 || seen.has(name)) return;
      const [count, self] = sums.get(name) ?? [0, 0];
      sums.set(name, [count + tree.count[i], self + tree.self[i]]);
    });
    for (const [name, [count, self]] of sums)
      rows.push([
        trace.head.texts[name],
        `Flame graph: ${tree.title}`,
        count,
        tree.isBytes ? null : self,
        null,
        null,
        tree.isBytes ? self : null,
        `flame/${tree.key}`,
      ]);
  }
}

function matchTable(trace: Trace, lanes: Lane[], search: string): Table {
  const rows: Cell[][] = [];
  const matches = matchTexts(trace.head.texts, search);
  if (matches) {
    const sums: Sums = new Map();
    addLanes(sums, lanes, matches);
    for (const { name, where, count, total, most, first } of sums.values())
      rows.push([trace.head.texts[name], where, count, total, most, first, null, "timeline"]);
    addTrees(rows, trace, new Set(Array.from(sums.values(), (one) => one.name)), matches);
  }
  return {
    columns: [
      { key: "name", title: "Name", kind: "text" },
      { key: "where", title: "Where", kind: "text" },
      { key: "count", title: "Count", kind: "count" },
      { key: "total_ns", title: "Total", kind: "time" },
      { key: "longest_ns", title: "Longest", kind: "time" },
      { key: "first_ns", title: "First at", kind: "time" },
      { key: "bytes", title: "Bytes", kind: "bytes" },
      { key: "part", kind: "text" },
    ],
    rows: rows.sort((a, b) => Number(b[3]) - Number(a[3])),
    row_count: rows.length,
    microseconds: false,
  };
}

/** `go`: to a part of the page, with this name searched. */
export function matchesPart(
  trace: Trace,
  lanes: Lane[],
  go: (part: string, name: string) => void,
  changed: () => void,
): Part {
  const place = el("div.rows");
  const count = el("span.count", { role: "status" });
  let text = "";
  const find = (search: string): void => {
    text = search;
    const data = matchTable(trace, lanes, search);
    const table = new DataTable(data, {
      label: "Matches",
      blank: true,
      choose: (row) => go(String(row[7]), String(row[0])),
    });
    place.replaceChildren(table.element);
    const n = data.rows.length;
    count.textContent = search.trim() ? `${n} name${n === 1 ? "" : "s"}` : "";
  };
  const search = searchBox("Search names", (wanted) => {
    find(wanted);
    changed();
  });
  find("");
  return {
    element: el(
      "section.view.matches",
      { "aria-labelledby": "view-title" },
      el(
        "header.part",
        {},
        el("h1", { id: "view-title" }, "Search"),
        el(
          "p.about",
          {},
          "Every name that has all the words, on the timeline and in the flame graphs. A row leads to it.",
        ),
      ),
      el("div.tools", {}, search, el("span.spacer"), count),
      place,
    ),
    toAddress: (to) => {
      if (text) to.set("search", text);
    },
    fromAddress: (from) => {
      search.value = from.get("search") ?? "";
      find(search.value);
    },
    shown: () => search.focus(),
    key: (event) => {
      if (event.key !== "/") return false;
      search.focus();
      return true;
    },
  };
}
