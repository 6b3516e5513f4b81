// The scrolling notes of a chart on a canvas, and its sheet.

import { NOTE_COLOURS, lastAtMost, layOut, scrollPosition, snapOf } from "./preview_notes.js";

export const SHEET_STRIP_MS = 4800;
const SHEET_STRIP = 480; // CSS pixels
const SHEET_COLUMN = 10;
// At speed 1 a note is visible for this time, as in the first game.
const VISIBLE_MS = 11_485;
const PALETTE = ["note-1", "note-2", "note-3", "snap-0", "snap-1", "snap-2", "snap-3", "snap-4", "ground", "line", "measure"];

export class Stage {
  /** `options` are what the viewer prefers: `speed`, `isUp`, `isBySnap`. */
  constructor(chart, options) {
    Object.assign(this, { chart, options });
    this.canvas = document.createElement("canvas");
    const notes = chart.columns.reduce((sum, { starts }) => sum + starts.length, 0);
    Object.assign(this.canvas, { role: "img", ariaLabel: `Scrolling notes: ${chart.keys} keys, ${notes} notes` });
    this.context = this.canvas.getContext("2d");
    this.layOut(true);
  }

  /** The colours of the style sheet, resolved by the browser, or those of paper. */
  readColours(isPrinted = false) {
    const { style } = this.canvas;
    style.forcedColorAdjust = "none";
    this.colours = {};
    for (const name of PALETTE) {
      style.color = `var(--preview-${name})`;
      const onPaper = { ground: "white", measure: "silver" }[name] ?? "black";
      this.colours[name] = isPrinted ? onPaper : getComputedStyle(this.canvas).color;
    }
    style.color = "";
    this.noteColours = Array.from(NOTE_COLOURS[this.chart.keys], (number) => this.colours[`note-${number}`]);
  }

  layOut(hasChanges) {
    this.positionOf = scrollPosition(hasChanges ? this.chart.scroll : []);
    this.columns = this.chart.columns.map((column) => layOut(column, this.positionOf));
    this.measures = Float64Array.from(this.chart.measures, this.positionOf).sort();
  }

  resize() {
    const { canvas } = this;
    canvas.width = Math.max(1, Math.round(canvas.clientWidth * devicePixelRatio));
    canvas.height = Math.max(1, Math.round(canvas.clientHeight * devicePixelRatio));
  }

  draw(now) {
    const { context, canvas, colours, columns } = this;
    const { speed, isUp } = this.options;
    const { width, height } = canvas;
    const lane = width / columns.length;
    const thickness = Math.max(3, Math.round(lane / 4));
    // The same for any number of keys: stages beside each other are locked.
    const line = height - Math.round(width / 10);
    const scale = (line * speed) / VISIBLE_MS;
    const here = this.positionOf(now);
    context.setTransform(1, 0, 0, isUp ? -1 : 1, 0, isUp ? height : 0);
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, width, height);
    context.fillStyle = colours.measure;
    context.globalAlpha = 0.5;
    for (let column = 1; column < columns.length; column += 1) context.fillRect(Math.round(column * lane), 0, 1, height);
    context.globalAlpha = 1;
    for (let index = lastAtMost(this.measures, here) + 1; index < this.measures.length; index += 1) {
      const y = line - (this.measures[index] - here) * scale;
      if (y < 0) break;
      context.fillRect(0, y, width, devicePixelRatio);
    }
    context.fillStyle = colours.line;
    context.fillRect(0, line, width, 2 * devicePixelRatio);
    context.fillStyle = colours.measure;
    for (let column = 0; column < columns.length; column += 1) this.bar(column * lane, line, lane, thickness);
    for (let column = 0; column < columns.length; column += 1) {
      context.fillStyle = this.noteColours[column];
      this.drawColumn(columns[column], column * lane, { now, lane, line, scale, here, thickness });
    }
  }

  /** A note, or the place where notes are played. */
  bar(x, bottom, lane, thickness) {
    this.context.beginPath();
    this.context.roundRect(x + 2, bottom - thickness, lane - 4, thickness, thickness / 4);
    this.context.fill();
  }

  /** Draws the notes of a column that have not ended yet and lie above the line. */
  drawColumn(notes, x, { now, lane, line, scale, here, thickness }) {
    const { context } = this;
    const highest = here + (line + thickness) / scale;
    // Where the scroll speed is 0, notes stay at the line until they are played.
    for (let index = lastAtMost(notes.reach, here - 1) + 1; notes.low[index] <= highest; index += 1) {
      const end = notes.ends[index];
      if ((end < 0 ? notes.starts[index] : end) < now) continue;
      const bottom = line - Math.max(0, notes.low[index] - here) * scale;
      if (this.options.isBySnap) context.fillStyle = this.colours[`snap-${snapOf(this.chart.timing, notes.starts[index])}`];
      if (end >= 0) {
        const top = line - (notes.high[index] - here) * scale;
        context.globalAlpha = 0.55;
        context.fillRect(x + lane / 5, Math.max(0, top), (3 * lane) / 5, bottom - Math.max(0, top));
        context.globalAlpha = 1;
        this.bar(x, top + thickness / 4, lane, thickness / 4);
      }
      this.bar(x, bottom, lane, thickness);
    }
  }

  /** A strip of the sheet from this moment. */
  sheetStrip(from) {
    const { chart, colours } = this;
    const canvas = document.createElement("canvas");
    canvas.ariaHidden = "true";
    canvas.width = chart.keys * SHEET_COLUMN * devicePixelRatio;
    canvas.height = SHEET_STRIP * devicePixelRatio;
    const context = canvas.getContext("2d");
    const scale = SHEET_STRIP / SHEET_STRIP_MS;
    // Later is higher, as in the scrolling view.
    const toY = (ms) => (this.options.isUp ? (ms - from) * scale : SHEET_STRIP - (ms - from) * scale);
    context.scale(devicePixelRatio, devicePixelRatio);
    const fill = (colour, x, y, width, height) => {
      context.fillStyle = colour;
      context.fillRect(x, y, width, height);
    };
    fill(colours.ground, 0, 0, chart.keys * SHEET_COLUMN, SHEET_STRIP);
    for (let index = lastAtMost(chart.measures, from - 1) + 1; chart.measures[index] < from + SHEET_STRIP_MS; index += 1) {
      fill(colours.measure, 0, toY(chart.measures[index]), chart.keys * SHEET_COLUMN, 1);
    }
    chart.columns.forEach(({ starts, ends }, column) => {
      const colour = this.noteColours[column];
      const x = column * SHEET_COLUMN;
      for (let index = Math.max(0, lastAtMost(starts, from - 1)); starts[index] < from + SHEET_STRIP_MS; index += 1) {
        const [start, end] = [toY(starts[index]), toY(Math.min(ends[index], from + SHEET_STRIP_MS))];
        if (ends[index] >= from) fill(colour, x + 3, Math.min(start, end), SHEET_COLUMN - 6, Math.abs(end - start));
        if (starts[index] >= from) fill(colour, x + 1, start - 2, SHEET_COLUMN - 2, 3);
      }
    });
    return canvas;
  }
}
