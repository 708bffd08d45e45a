// Reads and writes PNG with a palette, which makes a picture of a page a fifth as large. Reads what Chromium writes, and
// what this writes.
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const TRUE_COLOUR = 2;
const PALETTE = 3;
const TRUE_COLOUR_ALPHA = 6;

/** The picture's width and height, and its pixels: red, green and blue, a byte each. */
export function decode(file) {
  const chunks = {};
  for (let at = SIGNATURE.length; at < file.length;) {
    const length = file.readUInt32BE(at);
    const name = file.toString('latin1', at + 4, at + 8);
    (chunks[name] ??= []).push(file.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const [header] = chunks.IHDR;
  const [width, height, depth, kind] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9]];
  const samples = { [TRUE_COLOUR]: 3, [PALETTE]: 1, [TRUE_COLOUR_ALPHA]: 4 }[kind];
  const bytes = Math.max(1, (samples * depth) >> 3);
  const line = Math.ceil((width * samples * depth) / 8);
  const data = inflateSync(Buffer.concat(chunks.IDAT));
  const rows = unfilter(data, line, height, bytes);
  const pixels = Buffer.alloc(width * height * 3);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const to = (y * width + x) * 3;
      if (kind === PALETTE) {
        const at = y * line + ((x * depth) >> 3);
        const index = (rows[at] >> (8 - depth - ((x * depth) & 7))) & ((1 << depth) - 1);
        chunks.PLTE[0].copy(pixels, to, index * 3, index * 3 + 3);
      } else {
        rows.copy(pixels, to, y * line + x * samples, y * line + x * samples + 3);
      }
    }
  }
  return { width, height, pixels };
}

function unfilter(data, line, height, bytes) {
  const rows = Buffer.alloc(line * height);
  for (let y = 0; y < height; y += 1) {
    const filter = data[y * (line + 1)];
    for (let x = 0; x < line; x += 1) {
      const at = y * line + x;
      const left = x >= bytes ? rows[at - bytes] : 0;
      const up = y > 0 ? rows[at - line] : 0;
      const corner = x >= bytes && y > 0 ? rows[at - line - bytes] : 0;
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      rows[at] = data[y * (line + 1) + 1 + x] + guess;
    }
  }
  return rows;
}

function paeth(left, up, corner) {
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

/** A PNG with the most frequent colours; every other one becomes the nearest of them. */
export function encode({ width, height, pixels }, colours) {
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += 3) {
    const colour = pixels.readUIntBE(at, 3);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const palette = spread([...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]), colours);
  const places = new Map(palette.map((colour, place) => [colour, place]));
  const depth = colours <= 16 ? 4 : 8;
  const line = Math.ceil((width * depth) / 8);
  const data = Buffer.alloc((line + 1) * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const colour = pixels.readUIntBE((y * width + x) * 3, 3);
      let place = places.get(colour);
      if (place === undefined) places.set(colour, (place = nearest(palette, colour)));
      data[y * (line + 1) + 1 + ((x * depth) >> 3)] |= depth === 8 ? place : place << (x & 1 ? 0 : 4);
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = depth;
  header[9] = PALETTE;
  const table = Buffer.alloc(palette.length * 3);
  palette.forEach((colour, place) => table.writeUIntBE(colour, place * 3, 3));
  const content = deflateSync(data, { level: 9 });
  const parts = [['IHDR', header], ['PLTE', table], ['IDAT', content], ['IEND', Buffer.alloc(0)]];
  return Buffer.concat([SIGNATURE, ...parts.map(([name, content]) => chunk(name, content))]);
}

/**
 * The most frequent colours, as those of surfaces are, however near each other; then those that aren't almost one that
 * was taken before.
 */
function spread(sorted, colours) {
  for (let least = 48; ; least = least >> 1) {
    const palette = sorted.slice(0, colours / 2).map(([colour]) => colour);
    for (const [colour] of sorted.slice(colours / 2)) {
      if (palette.length === colours) break;
      if (!palette.some((other) => distance(other, colour) < least * least)) palette.push(colour);
    }
    if (palette.length === colours || least === 0) return palette;
  }
}

function nearest(palette, colour) {
  let best = 0;
  for (let place = 1; place < palette.length; place += 1) {
    if (distance(palette[place], colour) < distance(palette[best], colour)) best = place;
  }
  return best;
}

function distance(one, other) {
  const part = (shift) => ((one >> shift) & 255) - ((other >> shift) & 255);
  return part(16) ** 2 + part(8) ** 2 + part(0) ** 2;
}

function chunk(name, content) {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), content]);
  const ends = Buffer.alloc(8);
  ends.writeUInt32BE(content.length, 0);
  ends.writeUInt32BE(crc32(named), 4);
  return Buffer.concat([ends.subarray(0, 4), named, ends.subarray(4)]);
}
