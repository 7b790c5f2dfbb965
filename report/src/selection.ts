// SPDX-License-Identifier: Apache-2.0
/**
 * The part of a trace that is chosen, for all parts of the page: a span of time, a lane, or both.
 */
import type { Trace } from "./data";
import type { Lane } from "./lanes";
import { Paths } from "./paths";
import type { Window } from "./rows";

export class Selection {
  area: Window | null = null;
  lane: Lane | null = null;
  readonly ranges = new Paths();
  readonly samples = new Paths();

  constructor(
    private trace: Trace,
    private all: Lane[],
    /** Called after each change: the address follows it. */
    private changed: () => void = () => {},
  ) {}

  /** What each choice needs is found before the first one. */
  prepare(): void {
    const threads = this.all.filter((lane) => lane.kind === "spans" && lane.thread >= 0);
    this.ranges.prepare(threads.filter((lane) => !lane.samples));
    this.samples.prepare(threads.filter((lane) => lane.samples));
  }

  get active(): boolean {
    return this.area !== null || this.lane !== null;
  }

  /** The time that is meant: without a choice, all. */
  get window(): Window {
    return this.area ?? { from: this.trace.from, to: this.trace.to };
  }

  /** The lanes that are meant: of a process's name, all of the process. */
  get lanes(): Lane[] {
    const { lane } = this;
    if (!lane) return this.all;
    return lane.kind === "process"
      ? this.all.filter((one) => one.process === lane.process)
      : [lane];
  }

  set(area: Window | null, lane: Lane | null): void {
    this.area = area;
    this.lane = lane;
    this.changed();
  }

  /** For the address: begin and end in ns, the number of the lane. */
  write(to: URLSearchParams): void {
    if (this.area) to.set("part", `${Math.round(this.area.from)}-${Math.round(this.area.to)}`);
    if (this.lane) to.set("lane", String(this.all.indexOf(this.lane)));
  }

  /** Of an address that names no part, the choice stays as it is. */
  read(from: URLSearchParams): void {
    const area = readWindow(from.get("part"));
    const lane = this.all[Number(from.get("lane") ?? -1)] ?? null;
    if (area || lane) [this.area, this.lane] = [area, lane];
  }
}

/** "1000-2500", in ns; a begin may be negative. */
export function readWindow(text: string | null): Window | null {
  const parts = /^(-?\d+)-(-?\d+)$/.exec(text ?? "");
  if (!parts) return null;
  const [from, to] = [Number(parts[1]), Number(parts[2])];
  return to > from ? { from, to } : null;
}
