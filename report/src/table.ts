// SPDX-License-Identifier: Apache-2.0
/**
 * A table of any view: only the rows that are seen are in the document, so that it holds any
 * number.
 */
import type { Cell, Column, Table } from "./data";
import { el } from "./dom";
import { cell as formatCell, isNumeric, title } from "./format";

const ROW = 26;
const SPARE = 8; // rows above and below what is seen

type Test = (row: Cell[]) => boolean;

const asNumber = (value: Cell): number =>
  typeof value === "number" ? value : value === null ? -Infinity : Number(value);
const asText = (value: Cell): string =>
  typeof value === "string"
    ? value
    : value === null
      ? ""
      : Array.isArray(value)
        ? JSON.stringify(value)
        : String(value);

/** "conv count>10": rows that have the words in a text, and whose columns compare so. */
export function parseFilter(text: string, columns: Column[]): Test[] {
  return text
    .split(/\s+/)
    .filter(Boolean)
    .map((word): Test => {
      const compared = /^([\w.]+)(>=|<=|>|<|=)(.+)$/.exec(word);
      const column = compared ? columns.findIndex((one) => one.key === compared[1]) : -1;
      if (compared && column >= 0) {
        const limit = Number(compared[3]);
        const wanted = compared[3].toLowerCase();
        switch (compared[2]) {
          case ">":
            return (row) => asNumber(row[column]) > limit;
          case "<":
            return (row) => asNumber(row[column]) < limit;
          case ">=":
            return (row) => asNumber(row[column]) >= limit;
          case "<=":
            return (row) => asNumber(row[column]) <= limit;
          default:
            return (row) => asText(row[column]).toLowerCase() === wanted;
        }
      }
      const low = word.toLowerCase();
      return (row) =>
        row.some(
          (value, i) => !isNumeric(columns[i].kind) && asText(value).toLowerCase().includes(low),
        );
    });
}

export interface TableOptions {
  label: string;
  allColumns?: boolean;
  /**
   * A cell without a value is empty, also of shares: it has none, rather than a share of nothing.
   */
  blank?: boolean;
  /** Rows may be chosen: with the mouse, or Enter. */
  choose?(row: Cell[]): void;
  sort?: { column: number; down: boolean };
  /** Names of a tree: how far in they are, by another column. */
  indent?: { column: number; depth: number } | undefined;
}

export class DataTable {
  readonly element: HTMLDivElement;
  private scroller: HTMLDivElement;
  private body: HTMLDivElement;
  private header: HTMLDivElement;
  private shown: number[]; // columns
  private order: number[]; // rows, filtered and sorted
  private tests: Test[] = [];
  private sorting: { column: number; down: boolean } | null;
  private greatest = new Map<number, number>(); // of shares
  private focus = -1;

  constructor(
    private table: Table,
    private options: TableOptions,
    private counted: (rows: number) => void = () => {},
  ) {
    this.shown = table.columns
      .map((_, i) => i)
      .filter((i) => options.allColumns || table.columns[i].title !== undefined);
    if (this.shown.length === 0) this.shown = table.columns.map((_, i) => i);
    this.sorting = options.sort ?? null;
    this.order = table.rows.map((_, i) => i);
    this.header = el("div.tr.head", { role: "row" });
    this.body = el("div.body", { role: "rowgroup" });
    this.scroller = el(
      "div.scroller",
      {
        tabindex: 0,
        role: "table",
        "aria-label": options.label,
        "aria-rowcount": table.rows.length + 1,
        onkeydown: (event: KeyboardEvent) => this.key(event),
      },
      this.header,
      this.body,
    );
    this.scroller.addEventListener("scroll", () => this.draw());
    this.element = el("div.table", {}, this.scroller);
    for (const i of this.shown)
      if (table.columns[i].kind === "share")
        this.greatest.set(
          i,
          Math.max(1, ...table.rows.slice(0, 5000).map((row) => asNumber(row[i]))),
        );
    this.measure();
    this.drawHeader();
    this.arrange();
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  /** Widths in letters, of what the first rows need. */
  private measure(): void {
    const sample = this.table.rows.slice(0, 400);
    let least = 0;
    const widths = this.shown.map((i) => {
      const column = this.table.columns[i];
      const longest = Math.max(
        title(column).length + 2,
        ...sample.map((row) => this.text(row, i).length),
      );
      const letters = isNumeric(column.kind)
        ? Math.min(longest + 1, 24)
        : Math.ceil(0.9 * Math.min(longest, column.kind === "lines" ? 90 : 70)) + 2;
      const narrow = isNumeric(column.kind)
        ? letters
        : Math.min(letters, innerWidth < 760 ? 16 : 28);
      least += narrow + 2;
      return `minmax(${narrow}ch, ${letters}ch)`;
    });
    this.scroller.style.setProperty("--columns", widths.join(" "));
    this.scroller.style.setProperty("--least", `${least + 3}ch`);
  }

  private text(row: Cell[], column: number): string {
    if (this.options.blank && row[column] === null) return "";
    return formatCell(this.table.columns[column].kind, row[column], this.table.microseconds);
  }

  private drawHeader(): void {
    this.header.replaceChildren(
      ...this.shown.map((i) => {
        const column = this.table.columns[i];
        const sorted = this.sorting?.column === i;
        const direction = sorted ? (this.sorting!.down ? "descending" : "ascending") : "none";
        const button = el(
          "button",
          { type: "button", title: `Sort by ${column.key}`, onclick: () => this.sortBy(i) },
          title(column),
          el(
            "span.arrow",
            { "aria-hidden": "true" },
            sorted ? (this.sorting!.down ? " ↓" : " ↑") : "",
          ),
        );
        return el(
          isNumeric(column.kind) ? "div.th.number" : "div.th",
          { role: "columnheader", "aria-sort": direction, "data-key": column.key },
          button,
        );
      }),
    );
  }

  sortBy(column: number): void {
    const first = isNumeric(this.table.columns[column].kind);
    this.sorting =
      this.sorting?.column === column
        ? { column, down: !this.sorting.down }
        : { column, down: first };
    this.drawHeader();
    this.arrange();
  }

  filter(text: string): void {
    this.tests = parseFilter(text, this.table.columns);
    this.arrange();
  }

  private arrange(): void {
    const { rows } = this.table;
    this.order = [];
    for (let i = 0; i < rows.length; i++)
      if (this.tests.every((test) => test(rows[i]))) this.order.push(i);
    if (this.sorting) {
      const { column, down } = this.sorting;
      const sign = down ? -1 : 1;
      const compare = isNumeric(this.table.columns[column].kind)
        ? (a: number, b: number): number => asNumber(rows[a][column]) - asNumber(rows[b][column])
        : (a: number, b: number): number =>
            asText(rows[a][column]).localeCompare(asText(rows[b][column]));
      this.order.sort((a, b) => sign * compare(a, b) || a - b);
    }
    this.focus = -1;
    this.counted(this.order.length);
    this.body.style.height = `${this.order.length * ROW}px`;
    this.scroller.scrollTop = 0;
    this.draw();
  }

  private draw(): void {
    const from = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - SPARE);
    const to = Math.min(
      this.order.length,
      Math.ceil((this.scroller.scrollTop + (this.scroller.clientHeight || 400)) / ROW) + SPARE,
    );
    const rows: HTMLElement[] = [];
    for (let at = from; at < to; at++) rows.push(this.row(at));
    this.body.replaceChildren(...rows);
  }

  private row(at: number): HTMLElement {
    const row = this.table.rows[this.order[at]];
    const element = el(at === this.focus ? "div.tr.focused" : "div.tr", {
      role: "row",
      "aria-rowindex": at + 2,
    });
    element.style.top = `${at * ROW}px`;
    for (const i of this.shown) {
      const column = this.table.columns[i];
      const text = this.text(row, i);
      const value = row[i];
      const td = el(
        isNumeric(column.kind) ? "div.td.number" : "div.td",
        {
          role: "cell",
          "data-key": column.key,
          "data-value": JSON.stringify(value),
          title: typeof value === "number" && column.kind !== "count" ? `${text} (${value})` : text,
        },
        text,
      );
      const { indent } = this.options;
      if (indent?.column === i)
        td.style.paddingLeft = `${4 + 12 * Math.min(40, Math.max(0, asNumber(row[indent.depth]) - 1))}px`;
      const greatest = this.greatest.get(i);
      if (greatest !== undefined && typeof value === "number") {
        td.classList.add("bar");
        td.style.setProperty("--part", `${Math.max(0, Math.min(100, (100 * value) / greatest))}%`);
      }
      element.append(td);
    }
    if (this.options.choose) {
      element.classList.add("choosable");
      element.addEventListener("click", () => this.options.choose!(row));
    }
    return element;
  }

  private key(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
    const moves: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (
      event.key === "Enter" &&
      this.focus >= 0 &&
      this.options.choose &&
      event.target === this.scroller
    )
      this.options.choose(this.table.rows[this.order[this.focus]]);
    else if (event.key in moves) this.moveFocus(this.focus + moves[event.key]);
    else return;
    event.preventDefault();
  }

  /** To the next row, or the one before; from the last to the first. */
  step(by: number): void {
    const n = this.order.length;
    if (n > 0) this.moveFocus(this.focus < 0 && by < 0 ? n - 1 : (this.focus + by + n) % n);
  }

  private moveFocus(to: number): void {
    this.focus = Math.max(0, Math.min(this.order.length - 1, to));
    const top = this.focus * ROW;
    const room = this.scroller.clientHeight - ROW;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + ROW > this.scroller.scrollTop + room) this.scroller.scrollTop = top + ROW - room;
    this.draw();
  }

  /** The first rows as a plain table, which paper has. */
  printed(most: number): HTMLTableElement {
    const head = el("tr", {}, ...this.shown.map((i) => el("th", {}, title(this.table.columns[i]))));
    const rows = this.order
      .slice(0, most)
      .map((at) =>
        el(
          "tr",
          {},
          ...this.shown.map((i) =>
            el(
              isNumeric(this.table.columns[i].kind) ? "td.number" : "td",
              {},
              this.text(this.table.rows[at], i),
            ),
          ),
        ),
      );
    return el("table.printed", {}, el("thead", {}, head), el("tbody", {}, ...rows));
  }
}
