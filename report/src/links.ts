// SPDX-License-Identifier: Apache-2.0
/**
 * Where a span is on the timeline, and what it is linked with: forward with backward, calls with
 * work of a GPU, a collective with that of the other ranks.
 */
import type { Trace } from "./data";
import * as format from "./format";
import type { Lane } from "./lanes";
import { firstAfter } from "./rows";

/** A span of a row of a lane. */
export interface Place {
  lane: Lane;
  row: number;
  id: number; // of the lane's spans
}

export interface Link {
  from: number; // numbers of ranges
  to: number;
  title: string;
  together?: boolean; // neither comes of the other: they are joined at their begins
}

/** Where a range of the trace, or work of a GPU, is drawn. */
export function placeOf(trace: Trace, lanes: Lane[], id: number): Place | null {
  const { ranges } = trace;
  for (const lane of lanes) {
    if (lane.spans !== ranges || lane.rows.length === 0) continue;
    for (let row = 0; row < lane.rows.length; row++) {
      let at = firstAfter(ranges, lane.rows[row], ranges.start[id]);
      if (lane.rows[row][at] !== id && at > 0) at--; // of no length
      if (lane.rows[row][at] === id) return { lane, row, id };
    }
  }
  return null;
}

export function linked(trace: Trace, lanes: Lane[], id: number): Link[] {
  return id >= trace.ranges.ranges
    ? launchers(trace, id)
    : [...passes(trace, lanes, id), ...launches(trace, id), ...fellows(trace, lanes, id)];
}

/** Calls that gave this work to a GPU. */
function launchers(trace: Trace, id: number): Link[] {
  const { calls, ranges } = trace;
  const found: Link[] = [];
  const process = trace.head.streams[ranges.thread[id]].process;
  for (let i = 0; i < calls.range.length; i++)
    if (
      calls.correlation[i] === ranges.correlation[id] &&
      calls.process[i] === process &&
      ranges.correlation[id] !== 0
    )
      found.push({ from: calls.range[i], to: id, title: "Launched by" });
  return found;
}

/** Forward and backward operators of each other. */
function passes(trace: Trace, lanes: Lane[], id: number): Link[] {
  const { links, ranges } = trace;
  const found: Link[] = [];
  for (let i = 0; i < links.to.length; i++) {
    if (links.to[i] === id) {
      const from = rangeAt(trace, lanes, links.fromThread[i], links.fromStart[i]);
      if (from >= 0) found.push({ from, to: id, title: "Forward" });
    } else if (
      links.fromThread[i] === ranges.thread[id] &&
      links.fromStart[i] === ranges.start[id] &&
      rangeAt(trace, lanes, ranges.thread[id], ranges.start[id]) === id
    )
      found.push({ from: id, to: links.to[i], title: "Backward" });
  }
  return found;
}

/** The same collective on other ranks. */
function fellows(trace: Trace, lanes: Lane[], id: number): Link[] {
  const { meetings, ranges, head } = trace;
  const own = (i: number): boolean =>
    meetings.thread[i] === ranges.thread[id] && meetings.start[i] === ranges.start[id];
  const found: Link[] = [];
  let first = 0;
  while (first < meetings.thread.length && !own(first)) first++;
  if (first === meetings.thread.length) return found;
  const number = meetings.number[first];
  while (first > 0 && meetings.number[first - 1] === number) first--;
  for (let i = first; i < meetings.thread.length && meetings.number[i] === number; i++) {
    const to = own(i) ? -1 : rangeAt(trace, lanes, meetings.thread[i], meetings.start[i]);
    if (to < 0) continue;
    const { title } = head.processes[head.threads[meetings.thread[i]].process];
    const wait = meetings.wait[i];
    const waits = wait < 0 ? "" : wait === 0 ? ", last" : `, waits ${format.time(wait / 1000)}`;
    const rank = /^rank \d+/.exec(title)?.[0] ?? title;
    found.push({ from: id, to, title: `${rank}${waits}`, together: true });
  }
  return found;
}

/** Work that this call gave to a GPU. */
function launches(trace: Trace, id: number): Link[] {
  const { calls, ranges } = trace;
  const found: Link[] = [];
  for (let i = 0; i < calls.range.length; i++)
    if (calls.range[i] === id)
      for (let work = ranges.ranges; work < ranges.count; work++)
        if (ranges.correlation[work] === calls.correlation[i])
          found.push({ from: id, to: work, title: "Launches" });
  return found;
}

function rangeAt(trace: Trace, lanes: Lane[], thread: number, start: number): number {
  for (const lane of lanes) {
    if (lane.thread !== thread || lane.spans !== trace.ranges) continue;
    for (const row of lane.rows) {
      const at = firstAfter(trace.ranges, row, start);
      if (at < row.length && trace.ranges.start[row[at]] === start) return row[at];
    }
  }
  return -1;
}
