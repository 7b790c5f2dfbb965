// SPDX-License-Identifier: Apache-2.0
/** Several traces that `sonde view` serves: the list of them, and the way from one to another. */
import { choice, el } from "./dom";
import * as format from "./format";

interface Listed {
  name: string;
  bytes: number;
  written_ms: number;
}

async function listed(address: string): Promise<Listed[]> {
  return (await (await fetch(address)).json()) as Listed[];
}

/** "2026-11-18 04:20", in the reader's own time. */
function when(ms: number): string {
  const date = new Date(ms - new Date(ms).getTimezoneOffset() * 60000);
  return date.toISOString().slice(0, 16).replace("T", " ");
}

function compareForm(traces: Listed[]): HTMLElement {
  const names = traces.map((trace, i): [string, string] => [String(i), trace.name]);
  let [a, b] = ["0", "1"];
  return el(
    "div.tools",
    {},
    choice("Compare", names, a, (chosen) => (a = chosen)),
    choice("with", names, b, (chosen) => (b = chosen)),
    el(
      "button",
      { type: "button", onclick: () => (location.href = a === b ? `${a}/` : `${a}-${b}/`) },
      "Show what changed",
    ),
  );
}

/** The first page of several traces. */
export async function listPart(): Promise<HTMLElement> {
  const traces = await listed("list");
  document.title = `${traces.length} traces – sonde`;
  return el(
    "section.summary",
    { "aria-label": "Traces" },
    el("h1", {}, `${traces.length} traces`),
    el(
      "table.printed.listing",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, "Trace"),
          el("th.number", { scope: "col" }, "Size"),
          el("th.number", { scope: "col" }, "Written"),
        ),
      ),
      el(
        "tbody",
        {},
        ...traces.map((trace, i) =>
          el(
            "tr",
            {},
            el("td", {}, el("a", { href: `${i}/` }, trace.name)),
            el("td.number", {}, format.bytes(trace.bytes)),
            el("td.number", {}, when(trace.written_ms)),
          ),
        ),
      ),
    ),
    traces.length > 1 ? compareForm(traces) : null,
  );
}

/** Of one of several: which it is, to choose another. Null: it is served alone, or from disk. */
export async function traceChoice(): Promise<HTMLElement | null> {
  const own = /^\/[0-9a-f]{32}\/(\d+(?:-\d+)?)\/$/.exec(location.pathname)?.[1];
  if (location.protocol !== "http:" || own === undefined) return null;
  const traces = await listed("../list");
  const names = traces.map((trace, i): [string, string] => [String(i), trace.name]);
  const [a, b] = own.split("-");
  return choice(
    "Trace",
    [
      ["", "All traces …"],
      ...(b === undefined
        ? []
        : [[own, `${traces[Number(a)].name} → ${traces[Number(b)].name}`] as [string, string]]),
      ...names,
    ],
    own,
    (chosen) => (location.href = chosen ? `../${chosen}/` : ".."),
  );
}
