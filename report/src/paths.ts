// SPDX-License-Identifier: Apache-2.0
/**
 * In what each span of a lane lies: its path of names. It is the same whatever part of the time is chosen, and found once;
 * what is shown of a part then adds up lengths alone.
 */
import type { Lane } from "./lanes";
import type { Row } from "./rows";

/** Bit of a span's path: an operator that is the only child of one of its own name, and one with it. */
export const FOLDED = 1;
export const PATH_SHIFT = 1;

const PIECE = 16384; // spans that are looked at before a frame may be drawn

/** The rows of a lane that lie in each other: the first row of samples is what the thread did, not where. */
const rowsOf = (lane: Lane): Row[] => (lane.samples ? lane.rows.slice(1) : lane.rows);

interface Known {
  rows: Row[];
  found: Uint32Array[];
  work: Generator<void>; // what is left of it
}

export class Paths {
  // Of each path: the one that it lies in (-1: none), and its last name; kind and place are those of the first span.
  readonly parent: number[] = [];
  readonly name: number[] = [];
  readonly kind: number[] = [];
  readonly place: number[] = [];
  private roots = new Map<number, number>();
  private children: Map<number, number>[] = []; // of each path, by name
  private known = new Map<Lane, Known>();

  /** Of each row of the lane its spans' paths, moved by PATH_SHIFT, and their bit. */
  of(lane: Lane): Omit<Known, "work"> {
    const known = this.begin(lane);
    while (!known.work.next().done);
    return known;
  }

  /** Finds them in moments in which the browser has nothing to do. */
  prepare(lanes: Lane[]): void {
    const waiting = lanes.map((lane) => this.begin(lane));
    const go = (deadline: IdleDeadline): void => {
      while (waiting.length > 0 && deadline.timeRemaining() > 2)
        if (waiting[0].work.next().done) waiting.shift();
      if (waiting.length > 0) requestIdleCallback(go);
    };
    requestIdleCallback(go);
  }

  private begin(lane: Lane): Known {
    let known = this.known.get(lane);
    if (!known) {
      const rows = rowsOf(lane);
      const found = rows.map((row) => new Uint32Array(row.length));
      this.known.set(lane, (known = { rows, found, work: this.find(lane, rows, found) }));
    }
    return known;
  }

  private *find(lane: Lane, rows: Row[], found: Uint32Array[]): Generator<void> {
    const { start, end, name, kind } = lane.spans;
    for (const [r, row] of rows.entries()) {
      const above = r > 0 && !lane.overlaps ? rows[r - 1] : null;
      let up = 0;
      for (let i = 0; i < row.length; i++) {
        const id = row[i];
        if (i % PIECE === PIECE - 1) yield;
        let within = -1;
        let folded = 0;
        if (above) {
          while (up < above.length && end[above[up]] < end[id]) up++;
          if (up < above.length && start[above[up]] <= start[id]) {
            const parent = above[up];
            within = found[r - 1][up] >>> PATH_SHIFT;
            // A range of the program (kind 0) is a call of its own, even in one of its name.
            if (name[parent] === name[id] && kind[parent] !== 0 && kind[id] !== 0) {
              const before = i > 0 && start[row[i - 1]] >= start[parent];
              const after = i + 1 < row.length && end[row[i + 1]] <= end[parent];
              folded = before || after ? 0 : FOLDED;
            }
          }
        }
        found[r][i] = (this.step(within, id, lane) << PATH_SHIFT) | folded;
      }
    }
  }

  private step(parent: number, id: number, lane: Lane): number {
    const name = lane.spans.name[id];
    const siblings = parent < 0 ? this.roots : this.children[parent];
    const known = siblings.get(name);
    if (known !== undefined) return known;
    const path = this.parent.length;
    siblings.set(name, path);
    this.children.push(new Map());
    this.parent.push(parent);
    this.name.push(name);
    this.kind.push(lane.spans.kind[id]);
    this.place.push(lane.samples?.spans.place[id] ?? 0);
    return path;
  }
}
