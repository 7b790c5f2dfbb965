// SPDX-License-Identifier: Apache-2.0
/** Elements made by hand. Every text goes through textContent: names in a trace are untrusted. */

export type Child = Node | string | null;

export interface Attributes {
  [name: string]: string | number | boolean | ((event: never) => void) | undefined;
}

/**
 * el("button.quiet", {onclick: f}, "text"): an element with classes, attributes, listeners,
 * children.
 */
export function el<K extends keyof HTMLElementTagNameMap>(
  spec: K | `${K}.${string}`,
  attributes?: Attributes,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElement(tag as K);
  if (classes.length > 0) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function")
      element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null));
  return element;
}

/** A labelled choice. */
export function choice(
  label: string,
  options: [value: string, title: string][],
  value: string,
  change: (value: string) => void,
): HTMLLabelElement {
  const select = el("select", { onchange: () => change(select.value) });
  for (const [key, title] of options)
    select.append(el("option", { value: key, selected: key === value }, title));
  select.value = value;
  return el("label.choice", {}, el("span", {}, label), select);
}

/** A search box that tells of its text after each change, and gives the focus back on Escape. */
export function searchBox(
  label: string,
  change: (text: string) => void,
  enter?: (back: boolean) => void,
): HTMLInputElement {
  const input = el("input.search", {
    type: "search",
    placeholder: label,
    "aria-label": label,
    spellcheck: "false",
    autocomplete: "off",
  });
  input.addEventListener("input", () => change(input.value));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") enter?.(event.shiftKey);
    if (event.key === "Escape") {
      input.value = "";
      change("");
      input.blur();
    }
  });
  return input;
}

/** One of a part of the page that is shown: what it has to stop when it is left. */
export interface Part {
  element: HTMLElement;
  /** Called once it is in the document, and has a size. */
  shown?(): void;
  left?(): void;
  /** What of it the address has besides its name: zoom, search. */
  toAddress?(to: URLSearchParams): void;
  fromAddress?(from: URLSearchParams): void;
  /** A key that no input took; true: it was used. */
  key?(event: KeyboardEvent): boolean;
}

/** Pixels of the device for each of CSS. */
export const pixelRatio = (): number => window.devicePixelRatio || 1;

/**
 * A canvas in device pixels, with the size of its box. Returns its context scaled to CSS pixels.
 */
export function fitCanvas(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D {
  const scale = pixelRatio();
  const context = canvas.getContext("2d", { alpha: false })!;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

/** Draws at most once a frame, however often it is asked. */
export function oncePerFrame(draw: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}
