// SPDX-License-Identifier: Apache-2.0
/** From the bytes in the page to typed arrays (docs/REPORT_PAGE.md, "Data"). */
import type {
  Before,
  Blocks as MemoryBlocks,
  Head,
  Heap,
  Ranges,
  Samples,
  Series,
  Stacks,
  Trace,
  Tree,
  TreeHead,
  ViewEntry,
} from "./data";

async function unpack(text: string): Promise<Uint8Array> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes; // made without zlib
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

interface Section {
  kind: string;
  from: number;
  to: number;
}

function* sections(bytes: Uint8Array): Generator<Section> {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  for (let at = 0; at + 8 <= bytes.length; ) {
    const kind = String.fromCharCode(...bytes.subarray(at, at + 4));
    const length = view.getUint32(at + 4, true);
    yield { kind, from: at + 8, to: at + 8 + length };
    at += 8 + length;
  }
}

/** A column of varints. */
class Column {
  constructor(
    private bytes: Uint8Array,
    private at: number,
  ) {}

  next(): number {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127;
    for (let power = 128; ; power *= 128) {
      byte = bytes[this.at++];
      value += (byte & 127) * power;
      if (byte < 128) return value;
    }
  }

  signed(): number {
    const value = this.next();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  real(view: DataView): number {
    this.at += 8;
    return view.getFloat64(this.at - 8, true);
  }
}

/** The sections of one kind, each a block of columns. */
class Blocks {
  readonly count: number;
  readonly view: DataView;

  constructor(
    private bytes: Uint8Array,
    private parts: Section[],
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset);
    this.count = parts.reduce((sum, part) => sum + this.view.getUint32(part.from, true), 0);
  }

  /** Calls `entry` with the columns and the number of each entry. */
  each(entry: (columns: Column[], index: number) => void): void {
    let index = 0;
    for (const part of this.parts) {
      const columns: Column[] = [];
      for (let at = part.from + 4; at < part.to; ) {
        columns.push(new Column(this.bytes, at + 4));
        at += 4 + this.view.getUint32(at, true);
      }
      for (let n = this.view.getUint32(part.from, true); n > 0; n--) entry(columns, index++);
    }
  }
}

function decodeRanges(spans: Blocks, works: Blocks, head: Head): Ranges {
  const count = spans.count + works.count;
  const ranges: Ranges = {
    count,
    ranges: spans.count,
    start: new Float64Array(count),
    end: new Float64Array(count),
    name: new Uint32Array(count),
    kind: new Uint8Array(count),
    thread: new Uint32Array(count),
    depth: new Uint16Array(count),
    flags: new Uint8Array(count),
    shapes: new Uint32Array(count),
    module: new Uint32Array(count),
    stack: new Uint32Array(count),
    correlation: new Uint32Array(count),
  };
  const last = new Float64Array(head.threads.length + 1);
  spans.each(([thread, place, name, ended, took, shapes, module, stack], i) => {
    const t = thread.next();
    const where = place.next();
    last[t] += ended.signed();
    ranges.thread[i] = t;
    ranges.flags[i] = where & 7;
    ranges.kind[i] = (where >>> 3) & 15;
    ranges.depth[i] = Math.floor(where / 128);
    ranges.name[i] = name.next();
    ranges.end[i] = last[t];
    ranges.start[i] = last[t] - took.next();
    ranges.shapes[i] = shapes.next();
    ranges.module[i] = module.next();
    ranges.stack[i] = stack.next();
  });
  const streams = new Map(
    head.streams.map((stream, i) => [`${stream.process}/${stream.queue}`, i]),
  );
  let at = 0;
  works.each(([process, queue, name, begun, took, correlation, kind], n) => {
    const i = spans.count + n;
    at += begun.signed();
    ranges.thread[i] = streams.get(`${process.next()}/${queue.next()}`) ?? 0;
    ranges.name[i] = name.next();
    ranges.start[i] = at;
    ranges.end[i] = at + took.next();
    ranges.correlation[i] = correlation.next();
    ranges.kind[i] = kind.next();
  });
  return ranges;
}

function decodeSeries(head: Head, counters: Blocks, memory: Blocks): Series[] {
  const at: number[][] = head.counters.map(() => []);
  const value: number[][] = head.counters.map(() => []);
  const older: number[][] = head.counters.map(() => []);
  let time = 0;
  counters.each(([track, when, what]) => {
    const n = track.next();
    at[n].push((time += when.signed()));
    value[n].push(what.real(counters.view));
  });
  time = 0;
  memory.each(([track, when, what, freed]) => {
    const n = track.next();
    at[n].push((time += when.signed()));
    value[n].push(what.signed());
    older[n].push(freed.next() + (older[n][older[n].length - 1] ?? 0));
  });
  return head.counters.map(([process, kind, name], n) => ({
    process,
    isMemory: kind === 1,
    isBytes: kind !== 0,
    name: head.texts[name],
    at: Float64Array.from(at[n]),
    value: Float64Array.from(value[n]),
    older: Float64Array.from(older[n]),
  }));
}

/** Sorted by start; categories are told in the same order, by device type. */
function decodeBlocks(blocks: Blocks, categories: Blocks, series: Series[]): MemoryBlocks {
  const n = blocks.count;
  const raw = {
    series: new Uint32Array(n),
    thread: new Int32Array(n),
    start: new Float64Array(n),
    end: new Float64Array(n),
    bytes: new Float64Array(n),
  };
  let at = 0;
  blocks.each(([track, thread, start, held, bytes], i) => {
    raw.series[i] = track.next();
    raw.thread[i] = thread.next() - 1;
    raw.start[i] = at += start.signed();
    const length = held.next();
    raw.end[i] = length === 0 ? Infinity : raw.start[i] + length - 1;
    raw.bytes[i] = bytes.next();
  });
  const order = Uint32Array.from({ length: n }, (_, i) => i).sort(
    (a, b) => raw.start[a] - raw.start[b] || a - b,
  );
  const sorted: MemoryBlocks = {
    count: n,
    series: order.map((i) => raw.series[i]),
    thread: Int32Array.from(order, (i) => raw.thread[i]),
    start: Float64Array.from(order, (i) => raw.start[i]),
    end: Float64Array.from(order, (i) => raw.end[i]),
    bytes: Float64Array.from(order, (i) => raw.bytes[i]),
    category: new Uint8Array(n),
  };
  const told: { time: number; bytes: number; category: number }[][] = [[], []];
  const last = [0, 0];
  categories.each(([type, time, bytes, category]) => {
    const t = type.next();
    last[t] = told[t].length === 0 ? time.signed() : last[t] + time.signed();
    told[t].push({ time: last[t], bytes: bytes.next(), category: category.next() });
  });
  const next = [0, 0];
  for (let i = 0; i < n; i++) {
    const t = series[sorted.series[i]].name === "Memory" ? 0 : 1;
    while (next[t] < told[t].length && told[t][next[t]].time < sorted.start[i]) next[t]++;
    // Of those of one moment, the first of this size.
    for (let j = next[t]; j < told[t].length && told[t][j].time === sorted.start[i]; j++)
      if (told[t][j].bytes === sorted.bytes[i]) {
        sorted.category[i] = told[t][j].category;
        told[t][j].bytes = -1;
        break;
      }
  }
  return sorted;
}

function decodeSamples(blocks: Blocks, threads: number): Samples {
  const n = blocks.count;
  const samples: Samples = {
    count: n,
    thread: new Uint32Array(n),
    end: new Float64Array(n),
    length: new Float64Array(n),
    number: new Float64Array(n),
    state: new Uint8Array(n),
    stack: new Uint32Array(n),
  };
  const last = new Float64Array(threads + 1);
  blocks.each(([thread, ended, length, state, stack], i) => {
    const t = thread.next();
    const bits = state.next();
    samples.thread[i] = t;
    samples.end[i] = last[t] += ended.signed();
    samples.length[i] = length.next();
    samples.state[i] = bits % 16;
    samples.number[i] = Math.floor(bits / 16);
    samples.stack[i] = stack.next();
  });
  return samples;
}

function decodeStacks(blocks: Blocks): Stacks {
  const n = blocks.count;
  const stacks: Stacks = {
    caller: new Uint32Array(n),
    name: new Uint32Array(n),
    place: new Uint32Array(n),
    line: new Uint32Array(n),
    kind: new Uint8Array(n),
  };
  blocks.each(([caller, name, place, line, kind], i) => {
    stacks.caller[i] = caller.next();
    stacks.name[i] = name.next();
    stacks.place[i] = place.next();
    stacks.line[i] = line.next();
    stacks.kind[i] = kind.next();
  });
  return stacks;
}

/** Of a comparison: the numbers of A, of the same nodes. */
function decodeBefore(about: TreeHead, nodes: Blocks): Before {
  const n = nodes.count;
  const before: Before = {
    unit: about.unit ?? "run",
    aUnits: about.a_units || 1,
    bUnits: about.b_units || 1,
    total: new Float64Array(n),
    self: new Float64Array(n),
    count: new Float64Array(n),
  };
  nodes.each(([total, self, count], i) => {
    before.total[i] = total.next();
    before.self[i] = self.next();
    before.count[i] = count.next();
  });
  return before;
}

function decodeTree(about: TreeHead, nodes: Blocks, before: Blocks): Tree {
  const n = nodes.count;
  const tree: Tree = {
    key: about.key,
    title: about.title,
    count_title: about.count_title,
    isBytes: about.measure === "bytes",
    ...(before.count > 0 ? { before: decodeBefore(about, before) } : {}),
    depth: new Uint32Array(n),
    name: new Uint32Array(n),
    total: new Float64Array(n),
    self: new Float64Array(n),
    count: new Float64Array(n),
    place: new Uint32Array(n),
    kind: new Uint8Array(n),
  };
  nodes.each(([depth, name, total, self, count, place, kind], i) => {
    tree.depth[i] = depth.next();
    tree.name[i] = name.next();
    tree.total[i] = total.next();
    tree.self[i] = self.next();
    tree.count[i] = count.next();
    tree.place[i] = place.next();
    tree.kind[i] = kind.next();
  });
  return tree;
}

function decodeHeaps(moments: Blocks, held: Blocks): Heap[] {
  const found = new Map<number, { process: number; moments: number[][]; held: number[][] }>();
  let at = 0;
  let latest = -1;
  moments.each(([node, process, when, ago, bytes, highest]) => {
    const root = node.next();
    const own = found.get(root) ?? { process: 0, moments: [], held: [] };
    own.process = process.next();
    at = (root === latest ? at : 0) + when.signed();
    latest = root;
    own.moments.push([at, at - ago.signed(), bytes.next(), highest.next()]);
    found.set(root, own);
  });
  held.each((columns) => {
    const [root, ...share] = columns.map((column) => column.next());
    found.get(root)!.held.push(share);
  });
  const column = (rows: number[][], i: number): Float64Array =>
    Float64Array.from(rows, (row) => row[i]);
  return [...found].map(([node, own]) => ({
    node,
    process: own.process,
    at: column(own.moments, 0),
    since: column(own.moments, 1),
    bytes: column(own.moments, 2),
    highest: column(own.moments, 3),
    held: {
      moment: Uint32Array.from(own.held, (share) => share[0]),
      node: Uint32Array.from(own.held, (share) => share[1]),
      blocks: column(own.held, 2),
      bytes: column(own.held, 3),
    },
  }));
}

/** Nodes of ranges are of the kind that the ranges of their name are. */
function kindsByName(tree: Tree, ranges: Ranges, texts: number): void {
  const kinds = new Uint8Array(texts);
  for (let i = 0; i < ranges.count; i++) kinds[ranges.name[i]] = ranges.kind[i];
  for (let i = 0; i < tree.kind.length; i++)
    if (tree.kind[i] === 0) tree.kind[i] = kinds[tree.name[i]];
}

/** The first and last moment that anything has; a trace of nothing has a moment's length. */
function bounds(trace: Omit<Trace, "from" | "to">): [number, number] {
  let from = Infinity;
  let to = -Infinity;
  const see = (at: number): void => {
    if (at < from) from = at;
    if (at > to) to = at;
  };
  for (let i = 0; i < trace.ranges.count; i++) {
    see(trace.ranges.start[i]);
    see(trace.ranges.end[i]);
  }
  for (let i = 0; i < trace.samples.count; i++) {
    see(trace.samples.end[i] - trace.samples.length[i]);
    see(trace.samples.end[i]);
  }
  trace.marks.at.forEach(see);
  trace.steps.at.forEach(see);
  for (const series of trace.series)
    if (series.at.length > 0) [series.at[0], series.at[series.at.length - 1]].forEach(see);
  for (const heap of trace.heaps) [heap.since[0], heap.at[heap.at.length - 1]].forEach(see);
  return from < to ? [from, to] : Number.isFinite(from) ? [from, from + 1] : [0, 1];
}

export async function decode(text: string): Promise<Trace> {
  const bytes = await unpack(text);
  const decoder = new TextDecoder();
  const json = (part: Section): unknown =>
    JSON.parse(decoder.decode(bytes.subarray(part.from, part.to)));
  const found = new Map<string, Section[]>();
  const trees: { about: TreeHead; parts: Section[]; before: Section[] }[] = [];
  for (const part of sections(bytes)) {
    if (part.kind === "TREE") trees.push({ about: json(part) as TreeHead, parts: [], before: [] });
    else if (part.kind === "NODE") trees[trees.length - 1].parts.push(part);
    else if (part.kind === "NODA") trees[trees.length - 1].before.push(part);
    else found.set(part.kind, [...(found.get(part.kind) ?? []), part]);
  }
  const blocks = (kind: string): Blocks => new Blocks(bytes, found.get(kind) ?? []);
  const head = json(found.get("HEAD")![0]) as Head;

  const links = blocks("LINK");
  const calls = blocks("CALL");
  const meetings = blocks("MEET");
  const marks = blocks("MARK");
  const steps = blocks("STEP");
  const series = decodeSeries(head, blocks("COUN"), blocks("MEMO"));
  const trace = {
    head,
    heaps: decodeHeaps(blocks("MOME"), blocks("HELD")),
    views: (found.get("VIEW") ?? []).map((part) => json(part) as ViewEntry),
    ranges: decodeRanges(blocks("SPAN"), blocks("WORK"), head),
    links: {
      to: new Uint32Array(links.count),
      fromThread: new Uint32Array(links.count),
      fromStart: new Float64Array(links.count),
    },
    meetings: {
      number: new Float64Array(meetings.count),
      thread: new Uint32Array(meetings.count),
      start: new Float64Array(meetings.count),
      wait: new Float64Array(meetings.count),
    },
    calls: {
      range: new Uint32Array(calls.count),
      process: new Uint32Array(calls.count),
      correlation: new Uint32Array(calls.count),
    },
    marks: {
      thread: new Int32Array(marks.count),
      name: new Uint32Array(marks.count),
      at: new Float64Array(marks.count),
      what: new Uint8Array(marks.count),
    },
    steps: {
      process: new Uint32Array(steps.count),
      number: new Float64Array(steps.count),
      at: new Float64Array(steps.count),
    },
    series,
    samples: decodeSamples(blocks("SAMP"), head.threads.length),
    stacks: decodeStacks(blocks("STAC")),
    blocks: decodeBlocks(blocks("ALLO"), blocks("CATE"), series),
    trees: trees
      .map((tree) =>
        decodeTree(tree.about, new Blocks(bytes, tree.parts), new Blocks(bytes, tree.before)),
      )
      .filter((tree) => tree.depth.length > 0),
  };
  links.each(([to, thread, start], i) => {
    trace.links.to[i] = to.next();
    trace.links.fromThread[i] = thread.next();
    trace.links.fromStart[i] = start.signed();
  });
  calls.each(([range, process, correlation], i) => {
    trace.calls.range[i] = range.next();
    trace.calls.process[i] = process.next();
    trace.calls.correlation[i] = correlation.next();
  });
  meetings.each(([number, thread, start, wait], i) => {
    trace.meetings.number[i] = number.next();
    trace.meetings.thread[i] = thread.next();
    trace.meetings.start[i] = start.signed();
    trace.meetings.wait[i] = wait.next() - 1;
  });
  let at = 0;
  marks.each(([thread, name, when, what], i) => {
    trace.marks.thread[i] = thread.next() - 1;
    trace.marks.name[i] = name.next();
    trace.marks.at[i] = at += when.signed();
    trace.marks.what[i] = what.next();
  });
  steps.each(([process, number, when], i) => {
    trace.steps.process[i] = process.next();
    trace.steps.number[i] = number.next();
    trace.steps.at[i] = when.signed();
  });
  for (const tree of trace.trees) kindsByName(tree, trace.ranges, head.texts.length);
  const [from, to] = bounds(trace);
  return { ...trace, from, to };
}
