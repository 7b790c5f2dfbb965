// SPDX-License-Identifier: Apache-2.0
/** The first part: what ran, what is worth knowing, what is missing. */
import type { Trace, View } from "./data";
import { el, type Part } from "./dom";
import * as format from "./format";
import { cellOf, columnAt, numberOf, totalOf, viewOf } from "./reader";
import { totalsList } from "./tables";

const find = (trace: Trace, name: string): View | undefined =>
  trace.views.find((entry) => entry.document.view === name && entry.group === "")?.document;

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
        ...(place ? [el("p.place", {}, el("code", {}, place))] : []),
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

function highlights(trace: Trace): HTMLElement {
  const list = el("ol.highlights");
  for (const highlight of trace.head.highlights)
    list.append(
      el(
        "li",
        {},
        el("a", { href: `#${highlight.link}` }, highlight.text),
        el("p", {}, highlight.detail),
      ),
    );
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

const MOST = 8; // functions and lines of the first screen

/**
 * Of a trace with samples: where its time goes, by function and by line, as those views have it.
 */
function sampled(
  trace: Trace,
  name: "functions" | "lines",
  heading: string,
  link: string,
  hint: string,
): HTMLElement | null {
  const view = viewOf(trace, name);
  if (!view || columnAt(view, "self_share") < 0) return null;
  const rows = [...view.rows]
    .sort((a, b) => numberOf(view, b, "self_ns") - numberOf(view, a, "self_ns"))
    .slice(0, MOST)
    .filter((row) => numberOf(view, row, "self_ns") > 0);
  if (rows.length === 0) return null;
  const most = numberOf(view, rows[0], "self_share") || 1;
  const list = el("ol.bars.sampled", { "data-view": name });
  for (const row of rows) {
    const [file, line, text] = ["file", "line", "source"].map((key) => cellOf(view, row, key));
    const place = `${String(file ?? "")
      .split("/")
      .pop()}${Number(line) > 0 ? `:${Number(line)}` : ""}`;
    const shown =
      name === "lines" && typeof text === "string"
        ? `${place}  ${text.trim()}`
        : `${String(cellOf(view, row, "function"))}  ${place}`;
    const bar = el("div.fill");
    bar.style.width = `${(100 * numberOf(view, row, "self_share")) / most}%`;
    list.append(
      el(
        "li",
        { "data-self": numberOf(view, row, "self_ns") },
        el("span.name", { title: `${shown} (${String(file ?? "")})` }, shown),
        el("span.track", { "aria-hidden": "true" }, bar),
        el("span.value", {}, format.share(numberOf(view, row, "self_share"))),
        el("span.value.wide", {}, format.timeNs(numberOf(view, row, "self_ns"))),
        el("span.value.wide", {}, plural(numberOf(view, row, "samples"), "sample")),
      ),
    );
  }
  return el(
    "section",
    { "aria-labelledby": `hot-${name}` },
    el("h2", { id: `hot-${name}` }, heading),
    list,
    el("p.hint", {}, el("a", { href: `#${link}` }, hint)),
  );
}

/** The ranges with most self time, as bars. */
function hottest(view: View | undefined): HTMLElement | null {
  if (!view || view.rows.length === 0) return null;
  const at = (key: string): number => view.columns.findIndex((column) => column.key === key);
  const [name, share, self, count] = ["name", "self_percent", "self_ns", "count"].map(at);
  const most = Math.max(1e-9, ...view.rows.map((row) => Number(row[share]) || 0));
  const list = el("ol.bars");
  for (const row of view.rows) {
    const part = Number(row[share]) || 0;
    const bar = el("div.fill");
    bar.style.width = `${(100 * part) / most}%`;
    list.append(
      el(
        "li",
        {},
        el("span.name", { title: String(row[name]) }, String(row[name])),
        el("span.track", { "aria-hidden": "true" }, bar),
        el("span.value", {}, format.share(row[share] as number | null)),
        el("span.value.wide", {}, format.timeNs(row[self] as number)),
        el("span.value.wide", {}, plural(Number(row[count]), "call")),
      ),
    );
  }
  return el(
    "section",
    { "aria-labelledby": "hottest" },
    el("h2", { id: "hottest" }, "Most time of their own"),
    list,
    el("p.hint", {}, el("a", { href: "#table/ops" }, "All operators and ranges")),
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
        el("h1", { id: "summary-title" }, trace.head.processes[0]?.title || "Summary"),
        about(summary),
      ),
      advice(summary),
      highlights(trace),
      hottest(summary),
      sampled(
        trace,
        "functions",
        "Functions with most time of their own, by samples",
        "flame/samples",
        "Flame graph of all samples",
      ),
      sampled(
        trace,
        "lines",
        "Lines with most time of their own, by samples",
        "source",
        "The source, with the time of each line",
      ),
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
