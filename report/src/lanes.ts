// SPDX-License-Identifier: Apache-2.0
/**
 * What is on the timeline, from top to bottom: of each process its steps, threads, streams,
 * counters.
 */
import { BESIDE, FUNCTION, type Series, type Spans, type Trace } from "./data";
import { sampleRows, type SampleRows } from "./samples";
import { lowerBound, stackUp, type Row } from "./rows";

export const COUNTER_HEIGHT = 44;
export const HEAD_HEIGHT = 24;
export const GAP = 6;

export interface Lane {
  kind: "process" | "spans" | "steps" | "counter";
  title: string;
  detail: string;
  process: number;
  thread: number; // index of the trace, or -1
  rows: Row[];
  spans: Spans;
  series?: Series;
  samples?: SampleRows; // what its rows are of
  overlaps?: boolean; // its rows do not lie in each other
  behind?: Series; // drawn behind it, on the same scale: what an allocator reserved
  marks: number[]; // numbers of the trace's marks
  folded: boolean;
  hidden: boolean;
  pinned: boolean;
  main?: Lane; // of a process: its busiest
  y: number;
  height: number;
}

function lane(more: Partial<Lane> & Pick<Lane, "kind" | "title" | "process" | "spans">): Lane {
  return {
    detail: "",
    thread: -1,
    rows: [],
    marks: [],
    folded: false,
    hidden: false,
    pinned: false,
    y: 0,
    height: 0,
    ...more,
  };
}

/** Numbers of ranges by thread and depth, in the order in which they are in the trace. */
function rowsByThread(trace: Trace): { nested: Row[][]; beside: Row[]; functions: Row[] } {
  const { ranges } = trace;
  const threads = trace.head.threads.length;
  const counts: number[][] = Array.from({ length: threads }, () => []);
  const nested: Row[][] = [];
  const beside: number[][] = Array.from({ length: threads }, () => []);
  const functions: number[][] = Array.from({ length: threads }, () => []);
  for (let i = 0; i < ranges.ranges; i++) {
    const t = ranges.thread[i];
    if (ranges.flags[i] & FUNCTION) functions[t].push(i);
    else if (ranges.flags[i] & BESIDE) beside[t].push(i);
    else counts[t][ranges.depth[i]] = (counts[t][ranges.depth[i]] ?? 0) + 1;
  }
  for (let t = 0; t < threads; t++)
    nested[t] = Array.from(counts[t], (count) => new Uint32Array(count ?? 0));
  const at = counts.map((rows) => rows.map(() => 0));
  for (let i = 0; i < ranges.ranges; i++) {
    if (ranges.flags[i] & (FUNCTION | BESIDE)) continue;
    const t = ranges.thread[i];
    const depth = ranges.depth[i];
    nested[t][depth][at[t][depth]++] = i;
  }
  return {
    nested: nested.map((rows) => rows.filter((row) => row.length > 0)),
    beside: beside.map((ids) => Uint32Array.from(ids)),
    functions: functions.map((ids) => Uint32Array.from(ids)),
  };
}

/** Steps as spans of their own: each lasts until the next one of its process. */
function stepLane(trace: Trace, process: number): Lane | null {
  const mine = Array.from(trace.steps.at.keys())
    .filter((i) => trace.steps.process[i] === process)
    .sort((a, b) => trace.steps.at[a] - trace.steps.at[b]);
  if (mine.length === 0) return null;
  const n = mine.length;
  const spans: Spans = {
    count: n,
    start: new Float64Array(n),
    end: new Float64Array(n),
    name: new Uint32Array(n),
    kind: new Uint8Array(n),
  };
  mine.forEach((step, i) => {
    spans.start[i] = trace.steps.at[step];
    spans.end[i] = i + 1 < n ? trace.steps.at[mine[i + 1]] : trace.to;
    spans.name[i] = trace.head.texts.push(`Step ${trace.steps.number[step]}`) - 1;
  });
  return lane({
    kind: "steps",
    title: "Steps",
    process,
    spans,
    rows: [Uint32Array.from(mine.keys())],
  });
}

const WAITS = 0.98; // of its time: a thread that waits so much is folded

/**
 * A thread's samples may be in another file of its process than its ranges: they are shown beside
 * those.
 */
function homes(trace: Trace): number[] {
  const { processes, threads } = trace.head;
  const first = new Map<string, number>();
  const key = (thread: (typeof threads)[number]): string =>
    `${processes[thread.process].host}/${processes[thread.process].pid}/${thread.tid}`;
  const busy = new Uint8Array(threads.length);
  for (let i = 0; i < trace.ranges.ranges; i++) busy[trace.ranges.thread[i]] = 1;
  threads.forEach((thread, t) => {
    const known = first.get(key(thread));
    if (known === undefined || (busy[t] && !busy[known])) first.set(key(thread), t);
  });
  return threads.map((thread) => first.get(key(thread))!);
}

function sampleLane(samples: SampleRows, title: string, detail: string, process: number): Lane {
  const { running_ns, lock_ns, waiting_ns } = samples.sums;
  const all = running_ns + lock_ns + waiting_ns;
  return lane({
    kind: "spans",
    title,
    detail,
    process,
    thread: samples.thread,
    spans: samples.spans,
    rows: samples.rows,
    samples,
    folded: all > 0 && lock_ns + waiting_ns >= WAITS * all,
  });
}

/**
 * What a device holds: the sum of its blocks, and what the allocator's own sum says was there
 * besides.
 */
function withEarlier(memory: Series, allocated: Series): Series {
  const value = memory.value.slice();
  let earlier = 0;
  let from = 0; // values are moved from the one on that a sum follows; the first sum is true of those before it, too
  for (let i = 0; i <= allocated.at.length; i++) {
    const until =
      i < allocated.at.length
        ? Math.max(0, lowerBound(memory.at, allocated.at[i] + 1) - 1)
        : value.length;
    if (i > 0)
      for (let k = from; k < until; k++) value[k] = memory.value[k] + earlier - memory.older[k];
    if (i === allocated.at.length) break;
    earlier = Math.max(0, allocated.value[i] - memory.value[until] + memory.older[until]);
    from = i === 0 ? 0 : until;
  }
  return { ...memory, value };
}

/**
 * Counters as lanes. Of a device's memory there is one, with what torch's allocator reserved behind
 * it.
 */
function counterLanes(trace: Trace, process: number): Lane[] {
  const mine = trace.series.filter((series) => series.process === process && series.at.length > 0);
  const one = (name: string): Series | undefined => mine.find((series) => series.name === name);
  const parts = new Set<Series>();
  const lanes: Lane[] = [];
  for (const series of mine) {
    const device = series.isMemory ? /^Memory of (.*)$/.exec(series.name)?.[1] : undefined;
    const [allocated, reserved] = device
      ? [one(`device.allocated ${device}`), one(`device.reserved ${device}`)]
      : [];
    if (allocated) parts.add(allocated);
    if (reserved) parts.add(reserved);
    const shown = allocated ? withEarlier(series, allocated) : series;
    lanes.push(
      lane({
        kind: "counter",
        title: series.name,
        process,
        spans: trace.ranges,
        series: shown,
        ...(reserved ? { behind: reserved } : {}),
      }),
    );
  }
  return lanes.filter(
    (one) => !trace.series.some((series) => parts.has(series) && one.title === series.name),
  );
}

export function makeLanes(trace: Trace): Lane[] {
  const { head, ranges } = trace;
  const rows = rowsByThread(trace);
  const streams: number[][] = head.streams.map(() => []);
  for (let i = ranges.ranges; i < ranges.count; i++) streams[ranges.thread[i]].push(i);
  const sampled = sampleRows(trace);
  const home = homes(trace);
  const lanes: Lane[] = [];
  head.processes.forEach((process, p) => {
    const before = lanes.length;
    lanes.push(
      lane({
        kind: "process",
        title: `${process.title || "process"} ${process.pid}`,
        detail: process.host,
        process: p,
        spans: ranges,
      }),
    );
    const steps = stepLane(trace, p);
    if (steps) lanes.push(steps);
    const busy: Lane[] = [];
    head.threads.forEach((thread, t) => {
      if (thread.process !== p) return;
      const title = thread.name || `thread ${thread.tid}`;
      const detail = thread.name ? String(thread.tid) : "";
      const marks = Array.from(trace.marks.at.keys()).filter((i) => trace.marks.thread[i] === t);
      const more = { kind: "spans" as const, process: p, thread: t, spans: ranges };
      if (rows.nested[t].length > 0 || marks.length > 0)
        busy.push(lane({ ...more, title, detail, rows: rows.nested[t], marks }));
      if (rows.beside[t].length > 0)
        busy.push(
          lane({
            ...more,
            title: `${title}: overlapping`,
            detail,
            overlaps: true,
            rows: stackUp(ranges, rows.beside[t]),
          }),
        );
      sampled.forEach((samples, s) => {
        const alone = rows.nested[t].length + rows.functions[t].length === 0;
        if (samples && home[s] === t)
          busy.push(sampleLane(samples, alone ? title : `${title}: samples`, detail, p));
      });
      if (rows.functions[t].length > 0)
        busy.push(
          lane({
            ...more,
            title: `${title}: Python calls`,
            detail,
            rows: stackUp(ranges, rows.functions[t]),
          }),
        );
    });
    lanes.push(...busy);
    head.streams.forEach((stream, s) => {
      if (stream.process === p && streams[s].length > 0)
        lanes.push(
          lane({
            kind: "spans",
            title: stream.name,
            detail: "GPU",
            process: p,
            spans: ranges,
            rows: stackUp(ranges, Uint32Array.from(streams[s])),
          }),
        );
    });
    lanes.push(...counterLanes(trace, p));
    // What a second file of a process has is shown where its first one is.
    if (
      lanes.length === before + 1 &&
      head.processes.some(
        (other, q) => q !== p && other.pid === process.pid && other.host === process.host,
      )
    )
      lanes.pop();
  });
  return lanes;
}
