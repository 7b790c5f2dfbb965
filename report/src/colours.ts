// SPDX-License-Identifier: Apache-2.0
/** One colour for each kind of work, the same in every part of the page, in light and in dark. */

interface Category {
  title: string;
  light: string;
  dark: string;
}

/** What an entry is, by what was recorded of it: enum snd_html_kind of src/export/page/page.h. */
const OPERATOR = 2;
/** The page's own, beyond those of the data: a thread that was sampled does not run. */
export const WAITING = 10;
export const RUNNING = 11;

// Fills are light enough in both themes for dark text to be read on them.
const categories: Category[] = [
  { title: "Python functions", light: "#cfe0ec", dark: "#83a5bd" },
  { title: "Native functions", light: "#d4d9e2", dark: "#8d97a8" },
  { title: "Modules", light: "#d4d9e2", dark: "#8d97a8" },
  { title: "Communication", light: "#f6c7d4", dark: "#cf8a9e" },
  { title: "Backward", light: "#d9ccf3", dark: "#a995d6" },
  { title: "Matrix products, convolutions", light: "#b9d4f6", dark: "#7ea6d9" },
  { title: "Normalization, softmax, loss", light: "#bfe5e2", dark: "#74b5b0" },
  { title: "Data movement", light: "#f7e0b5", dark: "#d2b272" },
  { title: "Calls of CUDA", light: "#f3d0bb", dark: "#c79a7e" },
  { title: "Other operators", light: "#cbe8c4", dark: "#86ba7b" },
  { title: "Kernels", light: "#b9d4f6", dark: "#7ea6d9" },
  { title: "Running", light: "#bfe3c2", dark: "#7bb082" },
  { title: "Waiting", light: "#e3e5e9", dark: "#6c7480" },
];
/** Ranges of the program itself: neighbours differ by their names, and mean nothing by it. */
const others: Category[] = [
  { title: "Others", light: "#c9dcd3", dark: "#86a898" },
  { title: "Others", light: "#dadfc4", dark: "#a5ac80" },
  { title: "Others", light: "#d3d6ee", dark: "#9397c4" },
  { title: "Others", light: "#ead6d3", dark: "#b98f89" },
  { title: "Others", light: "#c8e0e6", dark: "#7fa9b3" },
];
/**
 * Functions differ by their names within the colour of their kind, so that neighbours are told
 * apart.
 */
const shades: Category[] = [
  { title: "Python functions", light: "#bcd3e4", dark: "#7396b0" },
  { title: "Python functions", light: "#d9e6f0", dark: "#93b2c8" },
  { title: "Python functions", light: "#c4dbe0", dark: "#7aa3ae" },
  { title: "Native functions", light: "#c7cdd8", dark: "#7e899c" },
  { title: "Native functions", light: "#dedbe6", dark: "#979ab0" },
];
const all = [...categories, ...others, ...shades];

const at = (title: string): number => categories.findIndex((category) => category.title === title);
const OTHER_OPERATORS = at("Other operators");

/** By kind; operators and ranges are told apart below. */
const KINDS = [
  -1,
  at("Python functions"),
  -1,
  at("Backward"),
  at("Communication"),
  at("Calls of CUDA"),
  at("Kernels"),
  at("Data movement"),
  at("Native functions"),
  at("Modules"),
  at("Waiting"),
  at("Running"),
];

/** By the number of a category: the numbers of its shades, itself first. */
const shadesOf = new Map(
  ["Python functions", "Native functions"].map((title): [number, number[]] => [
    at(title),
    all.flatMap((category, i) => (category.title === title ? [i] : [])),
  ]),
);

/**
 * Operators of torch by what they are, without "aten::" and the "_" of those in place. Any other is
 * an other one.
 */
const OPERATORS: [title: string, names: string][] = [
  [
    "Matrix products, convolutions",
    "mm addmm bmm baddbmm addbmm mv addmv dot matmul linear einsum chain_matmul tensordot bilinear linear_backward mkldnn_linear mkldnn_linear_backward conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution _convolution convolution_overrideable convolution_backward convolution_backward_overrideable mkldnn_convolution cudnn_convolution cudnn_convolution_transpose cudnn_convolution_relu miopen_convolution thnn_conv2d _slow_conv2d_forward _slow_conv2d_backward slow_conv3d _conv_depthwise2d _scaled_mm _int_mm _sparse_mm scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_backward _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward _scaled_dot_product_cudnn_attention _scaled_dot_product_cudnn_attention_backward _flash_attention_forward _flash_attention_backward _efficient_attention_forward _efficient_attention_backward lstm gru _thnn_fused_lstm_cell mkldnn_rnn_layer _cudnn_rnn",
  ],
  [
    "Normalization, softmax, loss",
    "batch_norm _batch_norm_impl_index native_batch_norm native_batch_norm_backward _native_batch_norm_legit cudnn_batch_norm cudnn_batch_norm_backward layer_norm native_layer_norm native_layer_norm_backward group_norm native_group_norm native_group_norm_backward instance_norm rms_norm _fused_rms_norm norm linalg_vector_norm softmax _softmax _softmax_backward_data log_softmax _log_softmax _log_softmax_backward_data cross_entropy_loss nll_loss nll_loss_nd nll_loss_forward nll_loss_backward nll_loss2d nll_loss2d_forward nll_loss2d_backward mse_loss mse_loss_backward l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits kl_div",
  ],
  [
    "Data movement",
    "copy clone contiguous cat stack to _to_copy empty empty_like empty_strided new_empty new_empty_strided zeros zeros_like new_zeros ones ones_like full full_like fill zero view _unsafe_view _reshape_alias reshape transpose permute t expand expand_as as_strided detach resize resize_as slice select narrow unsqueeze squeeze flatten unflatten index index_select index_put gather scatter chunk split unbind pin_memory _pin_memory is_pinned item _local_scalar_dense lift_fresh set_data repeat pad constant_pad_nd",
  ],
];
const operators = new Map(
  OPERATORS.flatMap(([title, names]) =>
    names.split(" ").map((name): [string, number] => [name, at(title)]),
  ),
);

function hash(text: string): number {
  let value = 0;
  for (let i = 0; i < text.length; i++) value = (Math.imul(value, 31) + text.charCodeAt(i)) >>> 0;
  return value;
}

const ENGINE = "autograd::engine::evaluate_function"; // torch's own range around each backward function

function operatorOf(name: string): number {
  if (name.startsWith(ENGINE)) return at("Backward");
  const own = name.replace(/^aten::/, "");
  return operators.get(own) ?? operators.get(own.replace(/_$/, "")) ?? OTHER_OPERATORS;
}

/**
 * The number of a colour, by kind, and of operators and ranges by name, where it is found when it
 * is first asked for.
 */
export class Palette {
  private ranges: Int16Array;
  private operators: Int16Array;
  private functions: Int16Array;

  constructor(private texts: string[]) {
    this.functions = new Int16Array(texts.length).fill(-1);
    this.ranges = new Int16Array(texts.length).fill(-1);
    this.operators = new Int16Array(texts.length).fill(-1);
  }

  number(kind: number, name: number): number {
    const category = KINDS[kind];
    const own = shadesOf.get(category);
    if (own) {
      if (!(this.functions[name] >= 0)) this.functions[name] = hash(this.texts[name]) % 64;
      return own[this.functions[name] % own.length];
    }
    if (category >= 0) return category;
    if (kind === OPERATOR) {
      if (this.operators[name] < 0) this.operators[name] = operatorOf(this.texts[name]);
      return this.operators[name];
    }
    if (!(this.ranges[name] >= 0))
      this.ranges[name] = categories.length + (hash(this.texts[name]) % others.length);
    return this.ranges[name];
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

/**
 * What the colours mean, for a legend: those that are in use. The others are one entry with all of
 * their colours.
 */
export function legend(used: Uint8Array): { title: string; colour: string }[] {
  const colours = fills();
  const entries = categories
    .map((category, i) => ({ title: category.title, colour: colours[i], i }))
    .filter((entry) => (shadesOf.get(entry.i) ?? [entry.i]).some((i) => used[i] === 1));
  const rest = others
    .map((_, i) => categories.length + i)
    .filter((i) => used[i] === 1)
    .map((i) => colours[i]);
  if (rest.length === 0) return entries;
  const stripes = rest
    .map((colour, i) => `${colour} ${(100 * i) / rest.length}% ${(100 * (i + 1)) / rest.length}%`)
    .join(", ");
  return [
    ...entries,
    { title: "Others", colour: rest.length === 1 ? rest[0] : `linear-gradient(90deg, ${stripes})` },
  ];
}

/** Colours of the page, as the style sheet has them, for a canvas. */
export function theme(): Record<"back" | "text" | "muted" | "line" | "accent" | "lane", string> {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  return {
    back: read("--back"),
    text: read("--text"),
    muted: read("--muted"),
    line: read("--line"),
    accent: read("--accent"),
    lane: read("--lane"),
  };
}
