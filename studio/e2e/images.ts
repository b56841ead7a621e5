/** Pictures as pixels: smaller ones, several on one sheet, files with a palette, and how much two differ. */

import { deflateSync } from "node:zlib";

import { applyPalette, GIFEncoder, quantize } from "gifenc";
import { PNG } from "pngjs";

export interface Picture {
  width: number;
  height: number;
  /** Red, green, blue and alpha of each pixel. */
  data: Uint8Array;
}

export function decodePng(file: Buffer): Picture {
  const { width, height, data } = PNG.sync.read(file);
  // A copy: the quantizer reads the whole buffer that is below an array.
  return { width, height, data: Uint8Array.from(data) };
}

/** Returns a picture in which each pixel is the mean of `factor` times `factor` pixels. */
export function shrink(picture: Picture, factor: number): Picture {
  const width = Math.floor(picture.width / factor);
  const height = Math.floor(picture.height / factor);
  const data = new Uint8Array(width * height * 4);
  for (let at = 0; at < data.length; at += 1) {
    const pixel = at >> 2;
    const x = (pixel % width) * factor;
    const y = Math.floor(pixel / width) * factor;
    let sum = 0;
    for (let dy = 0; dy < factor; dy += 1)
      for (let dx = 0; dx < factor; dx += 1)
        sum += picture.data[((y + dy) * picture.width + x + dx) * 4 + (at & 3)] ?? 0;
    data[at] = Math.round(sum / factor ** 2);
  }
  return { width, height, data };
}

/** Returns a part of a picture. */
export function crop(picture: Picture, x: number, y: number, width: number, height: number): Picture {
  const data = new Uint8Array(width * height * 4);
  for (let row = 0; row < height; row += 1) {
    const from = ((y + row) * picture.width + x) * 4;
    data.set(picture.data.subarray(from, from + width * 4), row * width * 4);
  }
  return { width, height, data };
}

const GAP = 8;

/** Where the picture at a place is on a sheet. */
export function placeOnSheet(at: number, columns: number, width: number, height: number): [number, number] {
  return [GAP + (at % columns) * (width + GAP), GAP + Math.floor(at / columns) * (height + GAP)];
}

/** Puts pictures of the same size on one sheet. */
export function sheetOf(pictures: readonly Picture[], columns: number): Picture {
  const { width = 1, height = 1 } = pictures[0] ?? {};
  const rows = Math.ceil(pictures.length / columns);
  const sheet: Picture = {
    width: GAP + columns * (width + GAP),
    height: GAP + rows * (height + GAP),
    data: new Uint8Array(0),
  };
  sheet.data = new Uint8Array(sheet.width * sheet.height * 4).fill(128);
  for (const [at, picture] of pictures.entries()) {
    const [x, y] = placeOnSheet(at, columns, width, height);
    for (let row = 0; row < height; row += 1) {
      const line = picture.data.subarray(row * width * 4, (row + 1) * width * 4);
      sheet.data.set(line, ((y + row) * sheet.width + x) * 4);
    }
  }
  return sheet;
}

/** Returns which share of the pixels differs clearly in brightness, from 0 to 1. Pixels that `isHidden` names do not count. */
export function differenceOf(
  one: Picture,
  other: Picture,
  isHidden: (x: number, y: number) => boolean = () => false,
): number {
  if (one.width !== other.width || one.height !== other.height) return 1;
  let different = 0;
  for (let pixel = 0; pixel < one.width * one.height; pixel += 1) {
    const isFar = Math.abs(luminance(one, pixel) - luminance(other, pixel)) > CLEAR;
    if (isFar && !isHidden(pixel % one.width, Math.floor(pixel / one.width))) different += 1;
  }
  return different / (one.width * one.height);
}

/** Of 255. Below it is what a palette and the smoothing of letters change. */
const CLEAR = 20;

function luminance({ data }: Picture, pixel: number): number {
  const [red = 0, green = 0, blue = 0] = data.subarray(pixel * 4, pixel * 4 + 3);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Encodes a picture as a PNG with a palette, which is a fraction of one with all colours. */
export function encodePng(picture: Picture, colours = 256): Buffer {
  const { width, height, data } = picture;
  const palette = quantize(data, colours);
  const indexes = applyPalette(data, palette);
  const lines = Buffer.alloc((width + 1) * height);
  for (let row = 0; row < height; row += 1)
    lines.set(indexes.subarray(row * width, (row + 1) * width), row * (width + 1) + 1);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits for each pixel, which is an index into the palette.
  header.set([8, 3, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", header),
    chunk("PLTE", Buffer.from(palette.flat())),
    chunk("IDAT", deflateSync(lines, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(name: string, body: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, "latin1"), body]);
  const framed = Buffer.alloc(named.length + 8);
  framed.writeUInt32BE(body.length, 0);
  framed.set(named, 4);
  framed.writeUInt32BE(crc32(named), named.length + 4);
  return framed;
}

function crc32(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

export interface Frame {
  picture: Picture;
  /** How long it is shown. */
  ms: number;
}

/** Encodes an animation. One palette for all frames, and only what changed in each: still parts cost nothing. */
export function encodeGif(frames: readonly Frame[], colours = 128): Buffer {
  const gif = GIFEncoder();
  const all = Uint8Array.from(Buffer.concat(frames.map(({ picture }) => picture.data)));
  // One entry of the palette is left for "as before".
  const palette = quantize(all, colours - 1);
  const asBefore = palette.length;
  let before: Uint8Array | undefined;
  for (const { picture, ms } of frames) {
    const indexes = applyPalette(picture.data, palette);
    const shown = before ? indexes.map((index, at) => (index === before?.[at] ? asBefore : index)) : indexes;
    const own = { palette: [...palette, [0, 0, 0] as [number, number, number]], delay: ms };
    gif.writeFrame(shown, picture.width, picture.height, {
      ...own,
      transparent: before !== undefined,
      transparentIndex: asBefore,
      dispose: 1,
    });
    before = indexes;
  }
  gif.finish();
  return Buffer.from(gif.bytes());
}
