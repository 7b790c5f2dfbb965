// SPDX-License-Identifier: Apache-2.0
/**
 * Samples by time: what a thread was found in, as rows of a lane. The first row is what it did:
 * ran, or waited, and for what.
 */
import { RUNNING, WAITING } from "./colours";
import type { Samples, Spans, Trace } from "./data";
import type { Row } from "./rows";

const MOST_ROWS = 64; // frames further in are left out
const MOST_SPANS = 4_000_000; // of all threads: further ones have no frames, and their states

export const ON_CPU = 2;
const GIL_WAIT = 4;
const STATES = ["Running", "Waiting for the interpreter's lock", "Waiting"];

const stateOf = (bits: number): number => (bits & ON_CPU ? 0 : bits & GIL_WAIT ? 1 : 2);

/** What a lane of samples shows, in plain numbers. */
export interface SampleSums {
  samples: number;
  running_ns: number;
  lock_ns: number;
  waiting_ns: number;
}

export interface SampleRows {
  thread: number;
  spans: Spans & { place: Uint32Array };
  rows: Row[];
  waits: Row; // of the first row: what is no running
  sums: SampleSums;
}

/** Spans that are made one after another, without knowing how many. */
class Growing {
  start = new Float64Array(1024);
  end = new Float64Array(1024);
  name = new Uint32Array(1024);
  kind = new Uint8Array(1024);
  place = new Uint32Array(1024);
  count = 0;

  add(start: number, name: number, kind: number, place: number): number {
    if (this.count === this.start.length) {
      const more = <T extends Float64Array | Uint32Array | Uint8Array>(old: T): T => {
        const grown = new (old.constructor as new (length: number) => T)(2 * old.length);
        grown.set(old);
        return grown;
      };
      this.start = more(this.start);
      this.end = more(this.end);
      this.name = more(this.name);
      this.kind = more(this.kind);
      this.place = more(this.place);
    }
    this.start[this.count] = start;
    this.name[this.count] = name;
    this.kind[this.count] = kind;
    this.place[this.count] = place;
    return this.count++;
  }
}

/** Numbers of samples by thread, by the time at which they end. */
function byThread(samples: Samples, threads: number): number[][] {
  const mine: number[][] = Array.from({ length: threads }, () => []);
  for (let i = 0; i < samples.count; i++) mine[samples.thread[i]].push(i);
  for (const list of mine)
    if (list.some((one, i) => i > 0 && samples.end[one] < samples.end[list[i - 1]]))
      list.sort((a, b) => samples.end[a] - samples.end[b]);
  return mine;
}

/** Frames of a stack, outermost first. */
function framesOf(trace: Trace, stack: number, into: number[]): void {
  const { stacks } = trace;
  into.length = 0;
  for (let at = stack - 1; at >= 0; at = stacks.caller[at] - 1) into.push(at);
  into.reverse();
}

/**
 * Consecutive samples in one function are one span of its row, whatever its line: what is called
 * from elsewhere is another.
 */
function rowsOf(
  trace: Trace,
  thread: number,
  list: number[],
  states: number[],
  room: number,
): SampleRows {
  const { samples, stacks } = trace;
  const spans = new Growing();
  const rows: number[][] = [[]];
  const waits: number[] = [];
  const sums: SampleSums = { samples: 0, running_ns: 0, lock_ns: 0, waiting_ns: 0 };
  const open: number[] = []; // spans, by row; the first is the state's
  const frames: number[] = [];
  let last = -Infinity;
  const close = (from: number): void => {
    while (open.length > from) spans.end[open.pop()!] = last;
  };
  for (const i of list) {
    const end = samples.end[i];
    const start = Math.max(last, end - samples.length[i]); // what a clock moved does not overlap
    const state = stateOf(samples.state[i]);
    sums.samples += samples.number[i];
    sums[(["running_ns", "lock_ns", "waiting_ns"] as const)[state]] += samples.length[i];
    if (start > last) close(0);
    if (open.length > 0 && spans.name[open[0]] !== states[state]) {
      // What it did is another thing: the functions that it is in go on.
      spans.end[open[0]] = last;
      open[0] = -1;
    }
    if (open.length === 0 || open[0] < 0) {
      open[0] = spans.add(start, states[state], state === 0 ? RUNNING : WAITING, 0);
      rows[0].push(open[0]);
      if (state !== 0) waits.push(open[0]);
    }
    framesOf(trace, spans.count < room ? samples.stack[i] : 0, frames);
    const depth = Math.min(frames.length, MOST_ROWS);
    let same = 0;
    while (
      same < depth &&
      same + 1 < open.length &&
      spans.name[open[same + 1]] === stacks.name[frames[same]] &&
      spans.place[open[same + 1]] === stacks.place[frames[same]]
    )
      same++;
    close(same + 1);
    for (let at = same; at < depth; at++) {
      const frame = frames[at];
      const id = spans.add(start, stacks.name[frame], stacks.kind[frame], stacks.place[frame]);
      open.push(id);
      (rows[at + 1] ??= []).push(id);
    }
    last = end;
  }
  close(0);
  const { count, name, kind, place } = spans;
  return {
    thread,
    spans: { count, start: spans.start, end: spans.end, name, kind, place },
    rows: rows.map((row) => Uint32Array.from(row)),
    waits: Uint32Array.from(waits),
    sums,
  };
}

/** By thread of the trace: its samples as rows; nothing for threads without. */
export function sampleRows(trace: Trace): (SampleRows | undefined)[] {
  if (trace.samples.count === 0) return [];
  const states = STATES.map((text) => trace.head.texts.push(text) - 1);
  let room = MOST_SPANS;
  return byThread(trace.samples, trace.head.threads.length).map((list, thread) => {
    if (list.length === 0) return undefined;
    const made = rowsOf(trace, thread, list, states, room);
    room = Math.max(0, room - made.spans.count);
    return made;
  });
}
