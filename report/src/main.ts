// SPDX-License-Identifier: Apache-2.0
/** The page: decodes its data, lists its parts, shows the one that the address names. */
import { isDark, Palette } from "./colours";
import type { Trace, Trait, ViewEntry } from "./data";
import { decode } from "./decode";
import { el, type Part } from "./dom";
import { Flame } from "./flame";
import { HeapTime } from "./heap";
import * as format from "./format";
import { makeLanes, type Lane } from "./lanes";
import { listPart, traceChoice } from "./listing";
import { summaryPart, titleOf } from "./summary";
import { matchesPart } from "./matches";
import { Memory } from "./memory";
import { ModelTree } from "./model";
import { viewOf } from "./reader";
import { Roofline } from "./roofline";
import { Selection } from "./selection";
import { sourcePart } from "./source";
import { isEmpty, viewPart } from "./tables";
import { Timeline } from "./timeline";
import { foldMany } from "./tracks";

const byId = (id: string): HTMLElement => document.getElementById(id)!;

class Page {
  private lanes: Lane[];
  private palette: Palette;
  private timeline: Timeline | null = null;
  private part: Part | null = null;
  private chosen: Selection;
  private path = ""; // of the address: the part's name
  private keeping = 0; // a timer
  private address = ""; // as it was read or written last
  private views = new Map<string, ViewEntry[]>();

  constructor(private trace: Trace) {
    this.lanes = makeLanes(trace);
    foldMany(this.lanes);
    this.palette = new Palette(trace.head.texts);
    this.chosen = new Selection(trace, this.lanes, () => this.keep());
    for (const entry of trace.views)
      this.views.set(entry.document.view, [...(this.views.get(entry.document.view) ?? []), entry]);
    const title = titleOf(trace);
    byId("program").textContent = title;
    document.title = title ? `${title}${trace.head.a ? ", compared" : ""} – sonde` : "sonde";
    this.makeNav();
    this.chosen.prepare();
    window.addEventListener("hashchange", () => this.route());
    document.addEventListener("keydown", (event) => this.key(event));
    // In a notebook's frame a link would be relative to the notebook's address, not the page's.
    document.addEventListener("click", (event) => {
      const link = (event.target as Element).closest("a[href^='#']");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      location.hash = link.getAttribute("href")!;
    });
    byId("theme").addEventListener("click", () => this.changeTheme());
    byId("help").addEventListener("click", () => this.showHelp());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.route());
  }

  private has(view: string, trait: Trait): boolean {
    return this.views.get(view)![0].traits.includes(trait);
  }

  private makeNav(): void {
    const link = (hash: string, title: string): HTMLElement => el("a", { href: `#${hash}` }, title);
    const filled = [...this.views.keys()].filter(
      (view) => !this.has(view, "elsewhere") && !isEmpty(this.views.get(view)![0].document),
    );
    const empty = [...this.views.keys()].filter(
      (view) => !this.has(view, "elsewhere") && !filled.includes(view),
    );
    const tables = filled.filter((view) => !this.has(view, "part"));
    const drawn: [there: boolean, hash: string, title: string][] = [
      [this.lanes.some((lane) => lane.rows.length > 0 || lane.series), "timeline", "Timeline"],
      [this.trace.trees.some((tree) => tree.name.length > 0), "flame", "Flame graph"],
    ];
    const links = (there: boolean): HTMLElement[] =>
      drawn.filter((part) => part[0] === there).map(([, hash, title]) => link(hash, title));
    const absent = [
      ...links(false),
      ...empty.map((view) => link(`table/${view}`, this.views.get(view)![0].title)),
    ];
    byId("nav").replaceChildren(
      link("summary", "Summary"),
      ...this.comparison().map(([hash, title]) => link(hash, title)),
      ...links(true),
      ...this.optionalParts().map(([hash, title]) => link(hash, title)),
      link("matches", "Search"),
      ...(tables.length > 0 ? [el("h2", {}, "Tables")] : []),
      ...tables.map((view) => link(`table/${view}`, this.views.get(view)![0].title)),
      ...(absent.length > 0
        ? [el("details", {}, el("summary", {}, "Not recorded"), ...absent)]
        : []),
      el("p.version", {}, `sonde ${this.trace.head.version}`),
    );
  }

  /** Of two traces: the table of what changed, and the flame graph. */
  private comparison(): [hash: string, title: string][] {
    const tree = this.trace.trees.find((one) => one.before);
    return this.trace.head.a
      ? [
          ...(this.views.has("diff") ? [["table/diff", "What changed"] as [string, string]] : []),
          ...(tree ? [[`flame/${tree.key}`, "Flame graph of changes"] as [string, string]] : []),
        ]
      : [];
  }

  /** Parts that a trace has if it has what they show. */
  private optionalParts(): [hash: string, title: string][] {
    const has = (view: string): boolean => viewOf(this.trace, view) !== undefined;
    const all: [boolean, string, string][] = [
      [this.trace.blocks.count > 0, "memory", "Memory over time"],
      [this.trace.heaps.length > 0, "heap", "Heap over time"],
      [has("modules") || has("layers"), "model", "Model"],
      [has("source"), "source", "Source"],
      [has("roofline"), "roofline", "Roofline"],
    ];
    return all.filter(([there]) => there).map(([, hash, title]) => [hash, title]);
  }

  private make(hash: string): Part {
    const [kind, name = "", group = ""] = hash.split("/");
    if (kind === "timeline")
      return (this.timeline ??= new Timeline(
        this.trace,
        this.lanes,
        this.palette,
        this.chosen,
        () => this.keep(),
      ));
    if (kind === "flame")
      return new Flame(this.trace, this.lanes, this.palette, this.chosen, name, () => this.keep());
    const entries = kind === "table" ? this.views.get(name) : undefined;
    if (entries)
      return viewPart(
        entries,
        group,
        (chosen) => (location.hash = chosen ? `table/${name}/${chosen}` : `table/${name}`),
        this.trace.ranges.count > 0 ? (wanted) => this.findInTimeline(wanted) : null,
        this.trace,
        this.chosen,
        () => this.keep(),
      );
    if (kind === "matches")
      return matchesPart(
        this.trace,
        this.lanes,
        (part, wanted) => {
          if (part === "timeline") this.findInTimeline(wanted);
          else location.hash = `${part}?${new URLSearchParams({ search: wanted }).toString()}`;
        },
        () => this.keep(),
      );
    if (kind === "memory") return new Memory(this.trace, this.lanes, this.chosen);
    if (kind === "heap" && this.trace.heaps.length > 0)
      return new HeapTime(this.trace, this.palette, () => this.keep());
    if (kind === "model") return new ModelTree(this.trace);
    if (kind === "source") return sourcePart(this.trace);
    if (kind === "roofline") return new Roofline(this.trace);
    return summaryPart(this.trace);
  }

  route(): void {
    this.address = location.hash;
    const [path, query = ""] = location.hash.slice(1).split("?");
    const hash = decodeURIComponent(path) || "summary";
    const kept = new URLSearchParams(query);
    this.chosen.read(kept);
    this.part?.left?.();
    this.part = null; // while it is made and reads the address, that stays as it is
    const part = this.make(hash);
    part.fromAddress?.(kept);
    this.path = hash;
    this.part = part;
    byId("main").replaceChildren(this.part.element);
    byId("part").replaceChildren(...this.describePart());
    const [kind, name] = hash.split("/");
    for (const link of byId("nav").querySelectorAll("a")) {
      const own = link.getAttribute("href")!.slice(1).split("/");
      const isDiff = name?.startsWith("diff-") ?? false;
      if (
        own[0] === kind &&
        (kind === "table" ? own[1] === name : kind !== "flame" || own.length > 1 === isDiff)
      )
        link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    this.part.shown?.();
    this.keep();
  }

  /**
   * The address has what is seen: the part of the page, what is chosen of the trace, zoom and search. It
   * replaces the one before, so that "back" leads to another part.
   */
  private keep(): void {
    clearTimeout(this.keeping);
    this.keeping = window.setTimeout(() => this.writeAddress(), 200); // browsers refuse a hundred in a row
  }

  private writeAddress(): void {
    // One that is not ours: somebody goes elsewhere, and the event of it is on its way.
    if (!this.part || location.hash !== this.address) return;
    const kept = new URLSearchParams();
    this.chosen.write(kept);
    this.part.toAddress?.(kept);
    const path =
      this.part instanceof Flame && this.part.name ? `flame/${this.part.name}` : this.path;
    const query = kept.toString();
    const hash = `#${path}${query ? `?${query}` : ""}`;
    byId("part").replaceChildren(...this.describePart());
    if (hash === location.hash || (path === "summary" && !query && !location.hash)) return;
    try {
      history.replaceState(null, "", hash);
      this.address = location.hash;
    } catch {
      // A notebook's frame has no address of its own.
    }
  }

  /** Above all parts: which part of the trace is chosen, and a way back to all of it. */
  private describePart(): Node[] {
    const { chosen } = this;
    if (!chosen.active) return [];
    const { from, to } = chosen.window;
    const where = chosen.lane ? `, ${chosen.lane.title}` : "";
    return [
      el(
        "span",
        {},
        `${format.timeNs(from)} to ${format.timeNs(to)} (${format.timeNs(to - from)})${where}`,
      ),
      el(
        "button",
        {
          type: "button",
          "aria-label": "Show all of the trace",
          title: "Show all of the trace",
          onclick: () => {
            chosen.set(null, null);
            const wanted = `#${this.path.startsWith("flame/part-") ? "flame" : this.path}`;
            if (location.hash === wanted) this.route();
            else location.hash = wanted;
          },
        },
        "×",
      ),
    ];
  }

  private findInTimeline(name: string): void {
    location.hash = "timeline";
    // The timeline has no size before it is shown.
    setTimeout(() => this.timeline?.findName(name), 30);
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (target.matches("input, select, textarea, dialog *") || event.defaultPrevented) return;
    if (event.key === "?") this.showHelp();
    else if (!this.part?.key?.(event)) return;
    event.preventDefault();
  }

  private changeTheme(): void {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    this.route();
  }

  private showHelp(): void {
    const keys: [string, string][] = [
      ["W S", "zoom in and out"],
      ["A D", "move to the left and right"],
      ["← → ↑ ↓", "move the selection: neighbours, callers, callees"],
      ["F", "zoom to the selection"],
      ["0", "show all"],
      ["/", "search or filter"],
      ["Enter, N, P", "next and previous match"],
      ["C", "callers and callees, in a flame graph"],
      ["Ctrl + wheel", "zoom at the pointer"],
      ["Shift + wheel, Shift + drag", "move"],
      ["Drag", "select a part of the time"],
      ["Escape", "clear the selection"],
    ];
    const dialog = el(
      "dialog",
      { "aria-labelledby": "keys" },
      el("h2", { id: "keys" }, "Keys"),
      el(
        "dl.facts",
        {},
        ...keys.map(([key, text]) =>
          el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)),
        ),
      ),
      el("form", { method: "dialog" }, el("button", { type: "submit" }, "Close")),
    );
    dialog.querySelector("button")!.addEventListener("click", (event) => {
      event.preventDefault();
      dialog.close();
    });
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }
}

async function start(): Promise<void> {
  const data = byId("data");
  const text = data.textContent ?? "";
  data.remove(); // megabytes that are not needed any more
  if (text === "list") {
    byId("main").replaceChildren(await listPart());
  } else {
    const page = new Page(await decode(text));
    page.route();
    const others = await traceChoice();
    if (others) byId("program").after(others);
  }
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

/** Of a page that `sonde view` serves: as long as this is not answered, the page is open. */
if (location.protocol === "http:") fetch(new URL("open", location.href)).catch(() => {});

start().catch((error: unknown) => {
  byId("main").replaceChildren(
    el(
      "p.empty",
      { role: "alert" },
      `The report cannot be shown: ${error instanceof Error ? error.message : String(error)}`,
    ),
  );
  throw error;
});
