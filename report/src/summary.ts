// SPDX-License-Identifier: Apache-2.0
/** The first part: what ran, what is worth knowing, what is missing. */
import type { Cell, Trace, View } from "./data";
import { el, type Part } from "./dom";
import * as format from "./format";
import { cellOf, columnAt, numberOf, totalOf, viewOf } from "./reader";
import { totalsList } from "./tables";

const find = (trace: Trace, name: string): View | undefined =>
  trace.views.find((entry) => entry.document.view === name && entry.group === "")?.document;

const VERDICTS = {
  slower: "slower",
  faster: "faster",
  new: "new",
  gone: "gone",
  renamed: "renamed",
  same: "the same",
  unclear: "unclear",
  not_judged: "not judged",
};

/** Of a comparison: what `sonde diff` says of the whole, and the rows that it calls slower or faster. */
function comparison(trace: Trace): HTMLElement | null {
  const view = trace.views.find((entry) => entry.document.view === "diff")?.document;
  if (!trace.head.a || !view) return null;
  const link = (text: string): HTMLElement => el("a", { href: "#table/diff" }, text);
  const time = (of: Cell): string => format.timeNs(Number(of ?? 0));
  const counts = Object.entries(VERDICTS)
    .map(([key, text]): [number, string] => [Number(totalOf(view, key) ?? 0), text])
    .filter(([count]) => count > 0)
    .map(([count, text]) => `${count} ${text}`);
  const [before, after] = ["a_whole_ns", "b_whole_ns"].map((key) => time(totalOf(view, key)));
  const verdict = String(totalOf(view, "whole_verdict"));
  const whole = `A ${String(totalOf(view, "unit"))}: ${before} -> ${after}, ${verdict}`;
  const more = verdict === VERDICTS.not_judged ? "; several runs of each side are" : "";
  const list = el(
    "ol.highlights.compared",
    {},
    el("li", {}, link(whole), el("p", {}, counts.join(", ") + more)),
  );
  for (const row of view.rows
    .filter((one) => ["slower", "faster"].includes(String(cellOf(view, one, "verdict"))))
    .slice(0, 5)) {
    const [name, judged, a, b] = ["name", "verdict", "a_ns", "b_ns"].map((key) =>
      cellOf(view, row, key),
    );
    list.append(
      el(
        "li",
        {},
        link(`${String(name)} is ${String(judged)}`),
        el("p", {}, `${time(a)} -> ${time(b)}`),
      ),
    );
  }
  return el(
    "section",
    { "aria-labelledby": "compared" },
    el("h2", { id: "compared" }, "What changed from A to B"),
    list,
    el("p.hint", {}, `All below is of B: ${trace.head.b?.[0]?.split("/").pop() ?? ""}`),
  );
}

/** What is slow for a known reason: the numbers, the place, what to try. None: no section. */
function advice(view: View | undefined): HTMLElement | null {
  const table = view?.sections.find((section) => section.key === "advice");
  if (!table || table.rows.length === 0) return null;
  const list = el("ol.advice");
  for (const row of table.rows) {
    const [name, text, place, tries, link] = ["name", "text", "place", "try", "link"].map((key) =>
      String(cellOf(table, row, key) ?? ""),
    );
    list.append(
      el(
        "li",
        { "data-name": name },
        el("a", { href: `#${link}` }, text),
        ...(place && !text.includes(place) ? [el("p.place", {}, el("code", {}, place))] : []),
        el("p", {}, tries),
      ),
    );
  }
  return el(
    "section",
    { "aria-labelledby": "advice" },
    el("h2", { id: "advice" }, table.title ?? "What to try"),
    list,
  );
}

/** What else is worth knowing: nothing that the advice above says already. */
function highlights(trace: Trace, summary: View | undefined): HTMLElement | null {
  const table = summary?.sections.find((section) => section.key === "advice");
  const advised = new Set(table?.rows.map((row) => cellOf(table, row, "name")));
  const list = el("ol.highlights");
  const isLayered = viewOf(trace, "layers") !== undefined; // whose ranges are runs and their warm-up
  for (const highlight of trace.head.highlights.filter(
    (one) => !advised.has(one.advice ?? null) && !(isLayered && one.link === "table/ops"),
  ))
    list.append(
      el(
        "li",
        {},
        el("a", { href: `#${highlight.link}` }, highlight.text),
        el("p", {}, highlight.detail),
      ),
    );
  if (list.childElementCount === 0 && (advised.size > 0 || isLayered)) return null;
  if (list.childElementCount === 0)
    list.append(
      el(
        "li.empty",
        {},
        "The trace has nothing to point out: no ranges, samples, memory or steps.",
      ),
    );
  return el(
    "section",
    { "aria-labelledby": "worth" },
    el("h2", { id: "worth" }, "Worth knowing"),
    list,
  );
}

function ledger(view: View | undefined): HTMLElement {
  const section = el(
    "section",
    { "aria-labelledby": "ledger" },
    el("h2", { id: "ledger" }, "What is missing"),
  );
  if (!view || view.rows.length === 0) {
    section.append(el("p.good", {}, "Nothing is missing: the ledger is empty."));
    return section;
  }
  const at = (key: string): number => view.columns.findIndex((column) => column.key === key);
  const [key, count, text, note] = ["key", "count", "text", "note"].map(at);
  const list = el("ul.ledger");
  for (const row of view.rows)
    list.append(
      el(
        note >= 0 && row[note] ? "li.note" : "li.loss",
        { "data-key": String(row[key]), "data-value": String(row[count]) },
        el("strong", {}, String(row[count])),
        el("span", {}, String(row[text])),
      ),
    );
  section.append(list);
  return section;
}

const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

const MOST = 8; // functions, lines, allocators of the first screen

/** One bar: its share of the whole in per cent, and the numbers beside it. */
interface Bar {
  name: string;
  title: string;
  share: number;
  amount: string;
  count: string;
  self: number;
}

/** A section of bars, the longest of which has the full width; none: no section. */
function barSection(
  key: string,
  heading: string,
  bars: Bar[],
  link: string,
  hint: string,
): HTMLElement | null {
  bars = bars.filter((bar) => bar.share >= 0.005); // what is 0.00% of it is none
  if (bars.length === 0) return null;
  const most = Math.max(1e-9, ...bars.map((bar) => bar.share));
  const list = el("ol.bars", { "data-view": key });
  for (const bar of bars) {
    const fill = el("div.fill");
    fill.style.width = `${(100 * bar.share) / most}%`;
    list.append(
      el(
        "li",
        { "data-self": bar.self },
        el("span.name", { title: bar.title }, bar.name),
        el("span.track", { "aria-hidden": "true" }, fill),
        el("span.value", {}, format.share(bar.share)),
        el("span.value.wide", {}, bar.amount),
        el("span.value.wide", {}, bar.count),
      ),
    );
  }
  return el(
    "section",
    { "aria-labelledby": `hot-${key}` },
    el("h2", { id: `hot-${key}` }, heading),
    list,
    el("p.hint", {}, el("a", { href: `#${link}` }, hint)),
  );
}

/** The rows with most of `key`, greatest first; none that has nothing of it. */
const greatest = (view: View, key: string, count = MOST): Cell[][] =>
  [...view.rows]
    .sort((a, b) => numberOf(view, b, key) - numberOf(view, a, key))
    .slice(0, count)
    .filter((row) => numberOf(view, row, key) > 0);

/** "heap.c:7", or the file alone; built-in functions have none. */
function placeOf(view: View, row: Cell[]): string {
  const [file, line] = ["file", "line"].map((key) => cellOf(view, row, key));
  const name = String(file ?? "")
    .split("/")
    .pop()!;
  return name === "~" ? "" : `${name}${Number(line) > 0 ? `:${Number(line)}` : ""}`;
}

/** The function and its place, and for the mouse the whole path. */
function nameOf(view: View, row: Cell[]): { name: string; title: string } {
  const name = `${String(cellOf(view, row, "function") || "(not known)")}  ${placeOf(view, row)}`;
  return {
    name: name.trim(),
    title: `${name.trim()} (${String(cellOf(view, row, "file") ?? "")})`,
  };
}

/** Bars of the rows with most of `key`, with what is counted of each; of functions, where nothing else is said. */
function barsOf(
  view: View,
  key: string,
  share: (row: Cell[]) => number,
  [counted, one]: [key: string, one: string],
  {
    most = MOST,
    amount = format.timeNs,
    name = (row: Cell[]): Pick<Bar, "name" | "title"> => nameOf(view, row),
  } = {},
): Bar[] {
  return greatest(view, key, most).map((row) => ({
    ...name(row),
    share: share(row),
    amount: amount(numberOf(view, row, key)),
    count: plural(numberOf(view, row, counted), one),
    self: numberOf(view, row, key),
  }));
}

/** Of a trace with samples: where its time goes, by function, as that view has it. */
function sampledFunctions(trace: Trace): HTMLElement | null {
  const view = viewOf(trace, "functions");
  if (!view || columnAt(view, "self_share") < 0) return null;
  return barSection(
    "functions",
    "Functions with most time of their own, by samples",
    barsOf(view, "self_ns", (row) => numberOf(view, row, "self_share"), ["samples", "sample"]),
    "flame/samples",
    "Flame graph of all samples",
  );
}

/** Likewise by line. Several functions may share one: a comprehension and the function around it. */
function sampledLines(trace: Trace): HTMLElement | null {
  const view = viewOf(trace, "lines");
  if (!view || columnAt(view, "self_share") < 0) return null;
  const lines = new Map<string, Bar & { samples: number }>();
  for (const row of view.rows) {
    const [file, line, text] = ["file", "line", "source"].map((key) => cellOf(view, row, key));
    const key = Number(line) > 0 ? JSON.stringify([file, line]) : JSON.stringify(row);
    const bar = lines.get(key);
    if (bar) {
      bar.share += numberOf(view, row, "self_share");
      bar.self += numberOf(view, row, "self_ns");
      // Those of the inner function are among those of the outer one.
      bar.samples = Math.max(bar.samples, numberOf(view, row, "samples"));
      continue;
    }
    const { name, title } = nameOf(view, row);
    const shown = typeof text === "string" ? `${placeOf(view, row)}  ${text.trim()}` : name;
    lines.set(key, {
      name: shown,
      title: typeof text === "string" ? `${shown} (${String(file ?? "")})` : title,
      share: numberOf(view, row, "self_share"),
      amount: "",
      count: "",
      self: numberOf(view, row, "self_ns"),
      samples: numberOf(view, row, "samples"),
    });
  }
  const bars = [...lines.values()]
    .filter((bar) => bar.self > 0)
    .sort((a, b) => b.self - a.self)
    .slice(0, MOST)
    .map((bar) => ({
      ...bar,
      amount: format.timeNs(bar.self),
      count: plural(bar.samples, "sample"),
    }));
  return barSection(
    "lines",
    "Lines with most running time of their own, by samples",
    bars,
    "source",
    "The source, with the time of each line",
  );
}

/** Functions of Python whose calls were counted, each with its own time. */
function countedFunctions(trace: Trace): HTMLElement | null {
  const view = viewOf(trace, "functions");
  if (!view || columnAt(view, "calls") < 0) return null;
  const whole = Math.max(1, Number(totalOf(view, "self_ns") ?? 0));
  return barSection(
    "counted",
    "Functions with most time of their own, waiting included",
    barsOf(view, "self_ns", (row) => (100 * numberOf(view, row, "self_ns")) / whole, [
      "calls",
      "call",
    ]),
    "table/functions",
    "All functions",
  );
}

/** Who holds the heap at its peak, by function and line: the share is of the peak of that memory. */
function allocators(trace: Trace): HTMLElement | null {
  const view = viewOf(trace, "heap-functions");
  if (!view) return null;
  const heapOf = (row: Cell[]): string =>
    JSON.stringify([cellOf(view, row, "process"), cellOf(view, row, "memory")]);
  const heldBy = (row: Cell[]): number => numberOf(view, row, "peak_bytes");
  const peaks = new Map<string, number>();
  for (const row of view.rows) peaks.set(heapOf(row), (peaks.get(heapOf(row)) ?? 0) + heldBy(row));
  const nameIn = (row: Cell[]): Pick<Bar, "name" | "title"> => {
    const { name, title } = nameOf(view, row);
    return { name: cellOf(view, row, "memory") === "mapped" ? `${name} (mapped)` : name, title };
  };
  return barSection(
    "heap-functions",
    "Who holds the heap at its peak",
    barsOf(
      view,
      "peak_bytes",
      (row) => (100 * heldBy(row)) / Math.max(1, peaks.get(heapOf(row))!),
      ["allocations", "allocation"],
      { amount: format.bytes, name: nameIn },
    ),
    "table/heap-functions",
    "All allocators, with what they call",
  );
}

/** The layers that `sonde layers` measured, without their warm-up, slowest first. */
function layers(trace: Trace): HTMLElement | null {
  const view = viewOf(trace, "layers");
  if (!view) return null;
  const nameIn = (row: Cell[]): Pick<Bar, "name" | "title"> => {
    const [layer, name] = ["layer", "name"].map((key) => String(cellOf(view, row, key) ?? ""));
    const text = `layer ${layer}  ${name}`.trim();
    return { name: text, title: text };
  };
  return barSection(
    "layers",
    "Slowest layers",
    barsOf(view, "time_ns", (row) => numberOf(view, row, "time_percent"), ["count", "run"], {
      most: 10,
      name: nameIn,
    }),
    "table/layers",
    "All layers",
  );
}

/** The ranges with most self time. */
function hottest(view: View | undefined): HTMLElement | null {
  if (!view) return null;
  const nameIn = (row: Cell[]): Pick<Bar, "name" | "title"> => {
    const name = String(cellOf(view, row, "name"));
    return { name, title: name };
  };
  return barSection(
    "summary",
    "Most time of their own",
    barsOf(view, "self_ns", (row) => numberOf(view, row, "self_percent"), ["count", "call"], {
      most: view.rows.length,
      name: nameIn,
    }),
    "table/ops",
    "All operators and ranges",
  );
}

/**
 * How much ran, and how long: as the totals have it. The timeline's own length is what is drawn
 * there, which may be less.
 */
function about(summary: View | undefined): HTMLElement | null {
  if (!summary) return null;
  const [processes, threads, span] = ["processes", "threads", "span_ns"].map((key) =>
    Number(totalOf(summary, key) ?? 0),
  );
  return el(
    "p.about",
    { "data-span": span },
    [
      plural(processes, "process", "processes"),
      plural(threads, "thread"),
      ...(span > 0 ? [format.timeNs(span)] : []),
    ].join(", "),
  );
}

/** What ran: of a job the program, not one of its ranks; of measured layers their model. */
export function titleOf(trace: Trace): string {
  const layers = viewOf(trace, "layers");
  const model = layers ? totalOf(layers, "model_name") : null;
  const title = trace.head.processes[0]?.title ?? "";
  const isJob = trace.head.processes.length > 1;
  return String(model || (isJob ? title.replace(/^rank \d+: /, "") : title));
}

export function summaryPart(trace: Trace): Part {
  const summary = find(trace, "summary");
  const totals = summary ? totalsList(summary.totals, summary.microseconds) : null;
  return {
    element: el(
      "section.summary",
      { "aria-labelledby": "summary-title" },
      el(
        "header.part",
        {},
        el("h1", { id: "summary-title" }, titleOf(trace) || "Summary"),
        about(summary),
      ),
      comparison(trace),
      advice(summary),
      highlights(trace, summary),
      layers(trace) ?? hottest(summary),
      allocators(trace),
      sampledFunctions(trace),
      sampledLines(trace),
      countedFunctions(trace),
      totals
        ? el(
            "section",
            { "aria-labelledby": "facts" },
            el("h2", { id: "facts" }, "What ran"),
            totals,
          )
        : null,
      ledger(find(trace, "ledger")),
    ),
  };
}
