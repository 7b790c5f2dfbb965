// SPDX-License-Identifier: Apache-2.0
/** Numbers as `sonde report` prints them (src/view/render/format.c): the same digits. */
import type { Cell, Column, Kind } from "./data";

/** printf's %.Nf: a tie goes to the even digit, where toFixed() takes the greater. */
export function fixed(value: number, decimals: number): string {
  const power = 10 ** decimals;
  const scaled = value * power;
  const isTie = Math.abs(scaled % 1) === 0.5 && Number.isInteger(value * 2 ** (decimals + 1));
  if (!isTie) return value.toFixed(decimals);
  const low = Math.floor(scaled);
  return ((low % 2 === 0 ? low : low + 1) / power).toFixed(decimals);
}

export function time(us: number): string {
  if (us >= 1e6) return `${fixed(us / 1e6, 3)}s`;
  if (us >= 1e3) return `${fixed(us / 1e3, 3)}ms`;
  return `${fixed(us, 3)}us`;
}

export const timeNs = (ns: number): string => time(ns / 1000);

export function bytes(value: number): string {
  for (const [size, name] of [
    [1073741824, "GB"],
    [1048576, "MB"],
    [1024, "KB"],
  ] as const)
    if (Math.abs(value) >= size) return `${fixed(value / size, 2)} ${name}`;
  return `${value} B`;
}

export function count(value: number): string {
  const units = ["", " K", " M", " G", " T", " P"];
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit + 1 < units.length) {
    value /= 1000;
    unit++;
  }
  return fixed(value, unit ? 3 : 0) + units[unit];
}

export const share = (percent: number | null): string =>
  percent === null ? "NaN" : `${fixed(percent, 2)}%`;
export const percent = (part: number, whole: number): string =>
  whole > 0 ? `${fixed((100 * part) / whole, 1)} %` : "–";

const numeric: ReadonlySet<Kind> = new Set<Kind>([
  "count",
  "time",
  "mean",
  "share",
  "bytes",
  "flops",
  "real",
  "flag",
]);
export const isNumeric = (kind: Kind): boolean => numeric.has(kind);

/** A cell's text; what has no value is empty. `microseconds`: the unit of the table's times. */
export function cell(kind: Kind, value: Cell, microseconds: boolean): string {
  if (value === null) return kind === "share" ? "NaN" : "";
  switch (kind) {
    case "time":
      return time(microseconds ? (value as number) : (value as number) / 1000);
    case "mean":
      return time(value as number);
    case "share":
      return share(value as number);
    case "bytes":
      return bytes(value as number);
    case "flops":
      return (value as number) > 0 ? count(value as number) : "--";
    case "real":
      return fixed(value as number, 1);
    case "flag":
      return value ? "yes" : "no";
    case "lines":
      return (value as string[]).join(" ← ");
    case "shapes":
      return typeof value === "string" ? value : JSON.stringify(value);
    default:
      return String(value);
  }
}

/** What a reader sees above a column; a column without a title is data alone, and has its key. */
export const title = (column: Column): string =>
  column.kind === "flops" && column.title?.endsWith(" ")
    ? `${column.title}FLOPs`
    : column.title?.trim() || column.key;
