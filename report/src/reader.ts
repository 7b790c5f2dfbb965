// SPDX-License-Identifier: Apache-2.0
/** Cells of a view's rows by the keys of `--json`. */
import type { Cell, Column, Table, Trace, View } from "./data";

/** The view of this name, not grouped, if it has rows. */
export function viewOf(trace: Trace, name: string): View | undefined {
  const view = trace.views.find(
    (entry) => entry.document.view === name && entry.group === "",
  )?.document;
  return view && view.rows.length > 0 ? view : undefined;
}

export const columnAt = (table: Table, key: string): number =>
  table.columns.findIndex((column) => column.key === key);

export const cellOf = (table: Table, row: Cell[], key: string): Cell =>
  row[columnAt(table, key)] ?? null;

export const numberOf = (table: Table, row: Cell[], key: string): number =>
  Number(cellOf(table, row, key) ?? 0);

export const totalOf = (view: View, key: string): Cell =>
  view.totals.find((total) => total.key === key)?.value ?? null;

/** The table with these columns alone, in this order; `titles` replace those that it has. */
export function pick(
  table: Table,
  keys: string[],
  rows: Cell[][],
  titles: Record<string, string> = {},
): Table {
  const columns = keys.map((key) => columnAt(table, key));
  return {
    columns: columns.map(
      (at): Column => ({
        ...table.columns[at],
        title: titles[table.columns[at].key] ?? table.columns[at].title ?? table.columns[at].key,
      }),
    ),
    rows: rows.map((row) => columns.map((at) => row[at])),
    row_count: rows.length,
    microseconds: table.microseconds,
  };
}
