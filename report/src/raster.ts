// SPDX-License-Identifier: Apache-2.0
/**
 * Rectangles as pixels. A frame of the timeline has tens of thousands of rectangles, most of them a
 * pixel wide: as calls of a
 * canvas they take longer than the time of a frame where there is no GPU. A row of spans is
 * therefore filled as one line of
 * pixels, which is copied to every line of the row; the canvas gets the picture whole, and texts
 * are drawn on it.
 *
 * All positions are pixels of the device. Colours are opaque, 4 bytes: red, green, blue, alpha, in
 * the order of memory.
 */

const LITTLE = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

export function packed(red: number, green: number, blue: number): number {
  return (
    (LITTLE
      ? (255 << 24) | (blue << 16) | (green << 8) | red
      : (red << 24) | (green << 16) | (blue << 8) | 255) >>> 0
  );
}

/** Of "#rrggbb", which is how the style sheet and the palette have colours. */
export function packedHex(colour: string): number {
  const value = parseInt(colour.slice(1), 16);
  return packed((value >> 16) & 255, (value >> 8) & 255, value & 255);
}

/**
 * `part` of the colour, the rest of what is under it. Two channels at a time: each has 8 bits of
 * room above it.
 */
export function mix(under: number, colour: number, part: number): number {
  const mine = Math.round(part * 256);
  const rest = 256 - mine;
  const even = (((under & 0xff00ff) * rest + (colour & 0xff00ff) * mine) >>> 8) & 0xff00ff;
  const odd = (((under >>> 8) & 0xff00ff) * rest + ((colour >>> 8) & 0xff00ff) * mine) & 0xff00ff00;
  return (even | odd) >>> 0;
}

/** A line of pixels. */
export class Strip {
  constructor(readonly pixels: Uint32Array) {}

  /**
   * From `left` to `right`, which may lie within pixels: their first and last have a share of the
   * colour.
   */
  fill(left: number, right: number, colour: number, part: number): void {
    const { pixels } = this;
    const first = Math.floor(left);
    const last = Math.floor(right);
    if (first === last) {
      pixels[first] = mix(pixels[first], colour, part * (right - left));
      return;
    }
    pixels[first] = mix(pixels[first], colour, part * (first + 1 - left));
    if (part === 1) pixels.fill(colour, first + 1, last);
    else for (let x = first + 1; x < last; x++) pixels[x] = mix(pixels[x], colour, part);
    if (last < pixels.length) pixels[last] = mix(pixels[last], colour, part * (right - last));
  }
}

export class Raster {
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(this.image.data.buffer);
  /** The line being filled: put() shows it. */
  strip = new Strip(new Uint32Array(1));
  /** What is under all rows: the background, and lines of the grid. */
  ground = new Uint32Array(1);

  get width(): number {
    return this.image.width;
  }

  get height(): number {
    return this.image.height;
  }

  /** A picture of this size with nothing but the background, and vertical lines at these pixels. */
  begin(width: number, height: number, back: number, lines: number[], line: number): void {
    if (width !== this.width || height !== this.height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.strip = new Strip(new Uint32Array(width));
      this.ground = new Uint32Array(width);
    }
    this.ground.fill(back);
    for (const x of lines) if (x >= 0 && x < width) this.ground[x] = line;
    for (let y = 0; y < height; y++) this.pixels.set(this.ground, y * width);
  }

  /** A line with nothing on it. */
  clear(): Strip {
    this.strip.pixels.set(this.ground);
    return this.strip;
  }

  /** The line that was filled, from `top` to `bottom`. */
  put(top: number, bottom: number): void {
    for (let y = Math.max(0, top); y < Math.min(this.height, bottom); y++)
      this.pixels.set(this.strip.pixels, y * this.width);
  }

  /** One column from `top`, which may lie within a pixel, to `bottom`. */
  column(x: number, top: number, bottom: number, colour: number, part: number): void {
    const first = Math.floor(top);
    const until = Math.min(this.height, bottom);
    for (let y = Math.max(0, first); y < until; y++) {
      const at = y * this.width + x;
      this.pixels[at] = mix(this.pixels[at], colour, y === first ? part * (first + 1 - top) : part);
    }
  }

  show(context: CanvasRenderingContext2D): void {
    context.putImageData(this.image, 0, 0);
  }
}
