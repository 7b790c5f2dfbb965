// SPDX-License-Identifier: Apache-2.0
/** One colour for each kind of work, the same in every part of the page, in light and in dark. */

interface Category {
  title: string;
  pattern: RegExp;
  light: string;
  dark: string;
}

// The first that fits. Fills are light enough in both themes for dark text to be read on them.
const categories: Category[] = [
  { title: "Python", pattern: /\.py\(\d+\): |^<built-in|^<method|^nn\.Module: |^<string>\(/, light: "#cfe0ec", dark: "#83a5bd" },
  { title: "Steps and users' ranges", pattern: /^ProfilerStep|^## |^Optimizer\.|^DataLoader|dataloader/i, light: "#d4d9e2", dark: "#8d97a8" },
  { title: "Communication", pattern: /nccl|gloo|c10d|all_?reduce|all_?gather|broadcast/i, light: "#f6c7d4", dark: "#cf8a9e" },
  { title: "Backward", pattern: /Backward|^autograd::|_backward/, light: "#d9ccf3", dark: "#a995d6" },
  { title: "Matrix products, convolutions", pattern: /mm\b|matmul|linear|conv|gemm|bmm|einsum|attention|sgemm|cutlass|cudnn|mkldnn/i, light: "#b9d4f6", dark: "#7ea6d9" },
  { title: "Normalization, softmax, loss", pattern: /norm|softmax|loss|nll|entropy/i, light: "#bfe5e2", dark: "#74b5b0" },
  { title: "Data movement", pattern: /copy|clone|contiguous|cat\b|stack|memcpy|memset|_to\b|to_copy|empty|zeros|ones|fill|view|reshape|transpose|permute|aten::t$|expand|as_strided|detach|resize/i, light: "#f7e0b5", dark: "#d2b272" },
  { title: "CUDA calls", pattern: /^cuda|^cu[A-Z]/, light: "#f3d0bb", dark: "#c79a7e" },
  { title: "Elementwise and others of torch", pattern: /^aten::|^torch|::/, light: "#cbe8c4", dark: "#86ba7b" },
];
const others: Category[] = [
  { title: "Others", pattern: /./, light: "#c9dcd3", dark: "#86a898" },
  { title: "Others", pattern: /./, light: "#dadfc4", dark: "#a5ac80" },
  { title: "Others", pattern: /./, light: "#d3d6ee", dark: "#9397c4" },
  { title: "Others", pattern: /./, light: "#ead6d3", dark: "#b98f89" },
  { title: "Others", pattern: /./, light: "#c8e0e6", dark: "#7fa9b3" },
];
const all = [...categories, ...others];

function hash(text: string): number {
  let value = 0;
  for (let i = 0; i < text.length; i++) value = (Math.imul(value, 31) + text.charCodeAt(i)) >>> 0;
  return value;
}

function categoryOf(name: string): number {
  const found = categories.findIndex((category) => category.pattern.test(name));
  return found >= 0 ? found : categories.length + (hash(name) % others.length);
}

/** By number of a text: the number of its colour, found when it is first asked for. */
export class Palette {
  private known: Int16Array;

  constructor(private texts: string[]) {
    this.known = new Int16Array(texts.length).fill(-1);
  }

  number(name: number): number {
    if (this.known[name] < 0) this.known[name] = categoryOf(this.texts[name]);
    return this.known[name];
  }
}

export const isDark = (): boolean => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

export const fills = (): string[] => {
  const dark = isDark();
  return all.map((category) => (dark ? category.dark : category.light));
};

/** What the colours mean, for a legend: those that are in use. */
export function legend(used: Uint8Array): { title: string; colour: string }[] {
  const colours = fills();
  return categories.map((category, i) => ({ title: category.title, colour: colours[i], i })).filter((entry) => used[entry.i] === 1);
}

/** Colours of the page, as the style sheet has them, for a canvas. */
export function theme(): Record<"back" | "text" | "muted" | "line" | "accent" | "lane", string> {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  return { back: read("--back"), text: read("--text"), muted: read("--muted"), line: read("--line"), accent: read("--accent"), lane: read("--lane") };
}
