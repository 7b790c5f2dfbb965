// SPDX-License-Identifier: Apache-2.0
/** The source of what ran, file by file, with what each line cost in the margin. */
import type { Cell, Trace, View } from "./data";
import { choice, el, type Part } from "./dom";
import * as format from "./format";
import { cellOf, columnAt, pick, viewOf } from "./reader";
import { DataTable } from "./table";

const MARGIN = [
  "hits",
  "time_ns",
  "time_percent",
  "samples",
  "sampled_ns",
  "sampled_percent",
  "sampled_total_ns",
  "sampled_total_percent",
  "added_bytes",
  "tensor_bytes",
];

interface File {
  name: string;
  rows: Cell[][];
  ns: number;
}

function filesOf(view: View): File[] {
  const files = new Map<string, File>();
  const [name, counted, sampled] = ["file", "time_ns", "sampled_ns"].map((key) =>
    columnAt(view, key),
  );
  for (const row of view.rows) {
    const file = files.get(row[name] as string) ?? { name: row[name] as string, rows: [], ns: 0 };
    files.set(file.name, file);
    file.rows.push(row);
    file.ns += (row[counted] as number | null) ?? (row[sampled] as number | null) ?? 0;
  }
  return [...files.values()];
}

/** A file's name, longer where two end alike. */
function shortName(file: File, all: File[]): string {
  const parts = file.name.split("/");
  for (let n = 1; n < parts.length; n++) {
    const end = parts.slice(-n).join("/");
    if (!all.some((one) => one !== file && one.name.endsWith(`/${end}`))) return end;
  }
  return file.name;
}

export function sourcePart(trace: Trace): Part {
  const element = el(
    "section.view.source",
    { "aria-labelledby": "source-title" },
    el(
      "header.part",
      {},
      el("h1", { id: "source-title" }, "Source"),
      el("p.about", {}, "What each line cost: its time, hits and bytes."),
    ),
  );
  const view = viewOf(trace, "source");
  if (!view) {
    element.append(
      el(
        "p.empty",
        {},
        "The trace has no numbers of lines: record them with --lines, --line-memory or --sample.",
      ),
    );
    return { element };
  }
  const files = filesOf(view);
  const has = MARGIN.filter((key) => view.rows.some((row) => cellOf(view, row, key) !== null));
  const place = el("div.rows");
  const printed = el("div.print-only");
  const path = el("span.count");
  const note = el("p.hint", { role: "status" });
  const show = (file: File): void => {
    const table = new DataTable(
      pick(view, ["line", ...has, "source"], file.rows, {
        sampled_ns: "Self time",
        sampled_total_ns: "Total time",
      }),
      { blank: true, label: `Source of ${file.name}` },
    );
    place.replaceChildren(table.element);
    printed.replaceChildren(el("h2", {}, file.name), table.printed(1000));
    path.textContent = file.name;
    element.dataset.file = file.name;
    const without = file.rows.some((row) => cellOf(view, row, "source") === null);
    note.textContent = without
      ? "The text of this file is not here: when the page was made it was not found, had changed since the recording, or was no source code by its name."
      : "";
  };
  const titled = files.map((file, i): [string, string] => [
    String(i),
    `${shortName(file, files)}${file.ns > 0 ? ` · ${format.timeNs(file.ns)}` : ""}`,
  ]);
  element.append(
    el(
      "div.tools",
      {},
      choice("File", titled, "0", (value) => show(files[Number(value)])),
      el("span.spacer"),
      path,
    ),
    place,
    printed,
    note,
  );
  if (view.row_count > view.rows.length)
    element.append(
      el(
        "p.hint",
        {},
        `The page has the first ${view.rows.length} of ${view.row_count} lines, of the files with most time; all of them: sonde report --view source --rows -1.`,
      ),
    );
  show(files[0]);
  return { element };
}
