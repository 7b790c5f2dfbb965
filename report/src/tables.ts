// SPDX-License-Identifier: Apache-2.0
/** The part that shows a view: its totals, sections and rows, in one of its groupings. */
import type { Cell, Table, Total, Trace, Trait, View, ViewEntry } from "./data";
import { choice, el, searchBox, type Part } from "./dom";
import { cell as formatCell } from "./format";
import { rowsInPart, tableOfPart } from "./parttables";
import type { Selection } from "./selection";
import { DataTable, type TableOptions } from "./table";

/** "line-memory" as a heading. */
const asTitle = (key: string): string => key.charAt(0).toUpperCase() + key.slice(1);

export const isEmpty = (view: View): boolean =>
  view.error === undefined &&
  view.rows.length === 0 &&
  view.sections.every((section) => section.rows.length === 0);

/** "title: value" of the totals that text shows, too. */
export function totalsList(totals: Total[], microseconds: boolean): HTMLElement | null {
  const shown = totals.filter((total) => total.title && total.value !== null && total.value !== "");
  if (shown.length === 0) return null;
  return el(
    "dl.totals",
    {},
    ...shown.map((total) =>
      el(
        "div",
        {},
        el("dt", {}, total.title!.trim()),
        el(
          "dd",
          { "data-key": total.key, "data-value": JSON.stringify(total.value) },
          formatCell(total.kind, total.value, microseconds),
        ),
      ),
    ),
  );
}

/** Names that are set in by their depth, as text has them. */
function indentOf(view: View, traits: Trait[]): TableOptions["indent"] {
  const [name, depth] = ["name", "depth"].map((key) =>
    view.columns.findIndex((column) => column.key === key),
  );
  return traits.includes("indents") && name >= 0 && depth >= 0
    ? { column: name, depth }
    : undefined;
}

/** Of a chosen part: the view with its rows, or as it is, with a sentence that says which. */
function ofPart(entry: ViewEntry, trace: Trace, part: Selection): { view: View; note: string } {
  const view = entry.document;
  if (!part.active) return { view, note: "" };
  const table = tableOfPart(view, entry.group, trace, part);
  const sections = view.sections.map((section) => rowsInPart(section, part) ?? section);
  if (!table) return { view: { ...view, sections }, note: "This table is of the whole trace." };
  const left = view.columns.length - table.columns.length;
  return {
    view: {
      ...view,
      ...table,
      sections: [],
      totals: [],
      empty: "Nothing of this is in the selected part.",
    },
    note: `Of the selected part.${left > 0 ? " Columns that need the whole trace are left out." : ""}`,
  };
}

interface State {
  filter: string;
  all: boolean;
}

export function viewPart(
  entries: ViewEntry[],
  group: string,
  setGroup: (group: string) => void,
  find: ((name: string) => void) | null,
  trace: Trace,
  part: Selection,
  changed: () => void,
): Part {
  const entry = entries.find((one) => one.group === group) ?? entries[0];
  const { view, note } = ofPart(entry, trace, part);
  const state: State = { filter: "", all: false };
  const place = el("div.rows");
  const printed = el("div.print-only");
  const count = el("span.count", { role: "status" });
  let table: DataTable | null = null;

  const choose = (row: Cell[]): void => {
    const at = view.columns.findIndex((column) => column.key === "key" || column.key === "name");
    if (at >= 0 && typeof row[at] === "string") find!(row[at] as string);
  };
  const canFind = find && entry.traits.includes("finds");
  const build = (): void => {
    table = new DataTable(
      view,
      {
        label: entry.title,
        allColumns: state.all,
        blank: entry.traits.includes("blank"),
        indent: indentOf(view, entry.traits),
        ...(canFind ? { choose } : {}),
      },
      (rows) => {
        const whole =
          view.row_count > view.rows.length
            ? `${view.rows.length} of ${view.row_count}`
            : String(view.row_count);
        count.textContent = `${rows === view.rows.length ? "" : `${rows} of `}${whole} row${whole === "1" ? "" : "s"}`;
      },
    );
    table.filter(state.filter);
    place.replaceChildren(table.element);
    printed.replaceChildren(table.printed(200));
  };

  const element = el(
    "section.view",
    { "aria-labelledby": "view-title" },
    el(
      "header.part",
      {},
      el("h1", { id: "view-title" }, entry.title),
      el("p.about", {}, entry.summary),
    ),
  );
  if (view.error !== undefined) {
    element.append(el("p.empty", {}, view.error));
    return { element };
  }
  if (note) element.append(el("p.part-note", { role: "note" }, note));
  const totals = totalsList(view.totals, view.microseconds);
  if (totals) element.append(totals);
  for (const section of view.sections)
    if (section.rows.length > 0)
      element.append(sectionTable(section, section.title ?? asTitle(section.key)));
  const search = searchBox(
    "Filter: words, or count>10",
    (text) => {
      state.filter = text;
      table?.filter(text);
      if (table) printed.replaceChildren(table.printed(200));
      changed();
    },
    (back) => table?.step(back ? -1 : 1),
  );
  const groups = entries.map((one): [string, string] => [
    one.group,
    one.group === "" ? "name" : one.group,
  ]);
  const hidden = view.columns.some((column) => column.title === undefined);
  const tools = el(
    "div.tools",
    {},
    search,
    entries.length > 1
      ? choice(view.view === "diff" ? "Of" : "Group by", groups, entry.group, setGroup)
      : null,
    hidden
      ? el(
          "label.check",
          {},
          el("input", {
            type: "checkbox",
            onchange: (event: Event) => {
              state.all = (event.target as HTMLInputElement).checked;
              build();
            },
          }),
          "all columns",
        )
      : null,
    el("span.spacer"),
    count,
  );
  if (view.rows.length === 0) {
    element.append(el("p.empty", {}, view.empty ?? "Nothing of this is in the trace."));
    return { element };
  }
  if (view.title) element.append(el("h2", {}, view.title.replace(/ \(--view ops has all\)/, "")));
  element.append(tools, place, printed);
  if (canFind) element.append(el("p.hint", {}, "A row's click finds it in the timeline."));
  if (view.row_count > view.rows.length)
    element.append(
      el(
        "p.hint",
        {},
        `The page has the first ${view.rows.length} of ${view.row_count} rows; all of them: sonde report --view ${view.view} --rows -1.`,
      ),
    );
  build();
  return {
    element,
    toAddress: (to) => {
      if (state.filter) to.set("search", state.filter);
    },
    fromAddress: (from) => {
      search.value = state.filter = from.get("search") ?? "";
      table?.filter(state.filter);
    },
    key: (event) => {
      const acts: Record<string, () => void> = {
        "/": () => search.focus(),
        n: () => table?.step(1),
        p: () => table?.step(-1),
      };
      acts[event.key]?.();
      return event.key in acts;
    },
  };
}

function sectionTable(table: Table, heading: string): HTMLElement {
  const data = new DataTable(table, { label: heading });
  data.element.classList.add("small");
  return el("div.section", {}, el("h2", {}, heading), data.element);
}
