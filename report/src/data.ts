// SPDX-License-Identifier: Apache-2.0
/** What the page knows of a trace, once it is decoded. */

export type Kind =
  | "text"
  | "count"
  | "time"
  | "mean"
  | "share"
  | "bytes"
  | "flops"
  | "shapes"
  | "lines"
  | "flag"
  | "real";
export type Cell = string | number | boolean | null | unknown[];

export interface Column {
  key: string;
  title?: string;
  kind: Kind;
}

export interface Table {
  columns: Column[];
  rows: Cell[][];
  row_count: number;
  microseconds: boolean;
}

export interface Total {
  key: string;
  title?: string;
  kind: Kind;
  value: Cell;
}

/** A document of `sonde report`, with its columns described. */
export interface View extends Table {
  view: string;
  error?: string;
  empty?: string;
  title?: string;
  totals: Total[];
  sections: (Table & { key: string; title?: string })[];
}

/**
 * What the page does with a view besides showing its table: src/export/page/page_views.c has them.
 */
export type Trait = "finds" | "blank" | "indents" | "part" | "elsewhere";

export interface ViewEntry {
  title: string;
  traits: Trait[];
  summary: string;
  group: string;
  document: View;
}

export interface Highlight {
  text: string;
  detail: string;
  link: string;
  /** The pattern of advice that says the same, if there is one. */
  advice?: string;
}

export interface Head {
  version: string;
  spans: number;
  processes: { pid: number; title: string; host: string }[];
  threads: { process: number; tid: number; name: string }[];
  streams: { process: number; queue: number; name: string }[];
  counters: [process: number, kind: number, name: number][];
  highlights: Highlight[];
  a?: string[]; // of a comparison: files of both sides
  b?: string[];
  texts: string[];
}

/** What lies in rows: ranges, calls, GPUs' work, nodes of a flame graph. Times in ns. */
export interface Spans {
  count: number;
  start: Float64Array;
  end: Float64Array;
  name: Uint32Array;
  kind: Uint8Array; // what each is: colours.ts
}

export const BESIDE = 1;
export const UNFINISHED = 2;
export const FUNCTION = 4;

/** Ranges of the trace by number, and after them what GPUs did. */
export interface Ranges extends Spans {
  ranges: number; // how many are ranges; the rest is GPUs' work
  thread: Uint32Array; // of work: the number of its stream
  depth: Uint16Array;
  flags: Uint8Array;
  shapes: Uint32Array;
  module: Uint32Array;
  stack: Uint32Array;
  correlation: Uint32Array; // of work
}

export interface Links {
  to: Uint32Array; // number of a range
  fromThread: Uint32Array;
  fromStart: Float64Array;
}

export interface Calls {
  range: Uint32Array;
  process: Uint32Array;
  correlation: Uint32Array;
}

/** Ranges that are one collective, of all ranks: those of a number follow each other. */
export interface Meetings {
  number: Float64Array;
  thread: Uint32Array;
  start: Float64Array;
  wait: Float64Array; // until the last rank came; -1: not known
}

export interface Marks {
  thread: Int32Array; // -1: the process's
  name: Uint32Array;
  at: Float64Array;
  what: Uint8Array;
}

export interface Steps {
  process: Uint32Array;
  number: Float64Array;
  at: Float64Array;
}

export interface Series {
  process: number;
  isMemory: boolean;
  isBytes: boolean; // its values are bytes, of memory or of a counter
  name: string;
  at: Float64Array;
  value: Float64Array;
  older: Float64Array; // of memory: bytes freed so far that were there before the recording
}

/** Blocks of memory, by when they were taken. */
export interface Blocks {
  count: number;
  series: Uint32Array; // of the trace's: which device of which process
  thread: Int32Array;
  start: Float64Array;
  end: Float64Array; // Infinity: it was not freed
  bytes: Float64Array;
  category: Uint8Array;
}

/** torch's, as enum sonde_memory_category has them. */
export const CATEGORIES = [
  "Unknown",
  "Parameter",
  "Optimizer state",
  "Input",
  "Temporary",
  "Activation",
  "Gradient",
  "Autograd detail",
];

/** A tree, each node before its children. */
export interface Tree {
  key: string;
  title: string;
  count_title: string;
  isBytes: boolean; // its numbers are bytes, not ns
  depth: Uint32Array;
  name: Uint32Array;
  total: Float64Array;
  self: Float64Array;
  count: Float64Array;
  place: Uint32Array;
  kind: Uint8Array;
  before?: Before; // the numbers are of B, and these of A
}

/** What a tree is of, as its section says. */
export interface TreeHead {
  key: string;
  title: string;
  count_title: string;
  measure?: string; // "bytes"; else its numbers are ns
  unit?: string; // of a comparison: what times are of, a step or a run, and how many each side has
  a_units?: number;
  b_units?: number;
}

export interface Before {
  unit: string;
  aUnits: number;
  bUnits: number;
  total: Float64Array;
  self: Float64Array;
  count: Float64Array;
}

/** What the sampler found, in the order in which it was written. */
export interface Samples {
  count: number;
  thread: Uint32Array;
  end: Float64Array;
  length: Float64Array; // ns that it stands for, up to its end
  number: Float64Array; // of samples in a row
  state: Uint8Array; // enum sonde_sample_state
  stack: Uint32Array; // of Stacks, plus one; 0: none
}

/** Each after its caller. */
export interface Stacks {
  caller: Uint32Array; // plus one; 0: it is outermost
  name: Uint32Array;
  place: Uint32Array; // of the function: file and line
  line: Uint32Array; // that it was at
  kind: Uint8Array;
}

/** A heap over time: moments of the run, and what functions held from a moment on. */
export interface Heap {
  node: number; // of the tree "heap-all": its root
  process: number;
  at: Float64Array;
  since: Float64Array; // the state was seen from then on
  bytes: Float64Array;
  highest: Float64Array; // since the moment before
  held: {
    moment: Uint32Array; // they ascend
    node: Uint32Array; // of the tree "heap-all"
    blocks: Float64Array;
    bytes: Float64Array;
  };
}

export interface Trace {
  head: Head;
  heaps: Heap[]; // that have moments
  views: ViewEntry[];
  ranges: Ranges;
  links: Links;
  meetings: Meetings;
  calls: Calls;
  marks: Marks;
  steps: Steps;
  series: Series[];
  blocks: Blocks;
  trees: Tree[];
  samples: Samples;
  stacks: Stacks;
  from: number; // of all that has a time
  to: number;
}

export const LOST = 1;
