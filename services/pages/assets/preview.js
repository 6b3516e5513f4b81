// Draws a chart from its preview (docs/formats/preview.md): scrolling as in the game, or as a sheet.

import { canonicalNotes, decode, lastAtMost, layOut, scrollPosition } from "./preview_notes.js";

const SHEET_STRIP = 480; // CSS pixels
const SHEET_COLUMN = 10;
const SHEET_STRIPS = 120;
const LEAD_MS = 1000;
const TICK_AHEAD_MS = 120;
// At speed 1 a note is visible for this time, as in the first game.
const VISIBLE_MS = 11_485;
// The scale of the density curves of the lists.
const MAX_DENSITY = 40;
// The colour of each column: columns of a hand alternate, and a middle column stands out.
const COLOURS = { 4: "1221", 5: "12321", 6: "121121", 7: "1213121" };
const PALETTE = ["note-1", "note-2", "note-3", "ground", "line", "measure", "density", "loop"];

/** Fills the section, of which the page sets the data attributes, and shows it. */
export async function start(section) {
  const message = element("p", { className: "preview-message", role: "status" });
  section.replaceChildren(element("h2", { textContent: "Preview" }), message);
  section.hidden = false;
  let chart;
  try {
    const response = await fetch(section.dataset.preview);
    if (!response.ok) throw new Error(`status ${response.status}`);
    chart = decode(await response.json());
  } catch {
    const retry = element("button", { type: "button", textContent: "Try again", onclick: () => start(section) });
    message.replaceChildren("The preview could not be loaded. ", retry);
    return;
  }
  const preview = new Preview(section, message, chart);
  setTimeout(() => preview.verify());
}

function element(name, properties, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

function clock(ms) {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

class Preview {
  constructor(section, message, chart) {
    Object.assign(this, { section, message, chart, now: 0, last: 0, speed: 18, rate: 1, loop: [-1, -1] });
    Object.assign(this, { isUp: false, isPlaying: false, isSheet: false });
    this.frame = this.frame.bind(this);
    const starts = chart.columns.flatMap(({ starts }) => Array.from(starts));
    this.onsets = Float64Array.from(new Set(starts)).sort();
    this.noteStarts = Float64Array.from(starts).sort();
    this.build();
    this.context = this.canvas.getContext("2d");
    this.layOut(true);
    this.listen();
    this.readColours();
    this.setSheet(matchMedia("(prefers-reduced-motion: reduce)").matches);
    this.openMoment();
  }

  build() {
    const { keys, lengthMs, scroll } = this.chart;
    const notes = this.noteStarts.length;
    const button = (textContent, onclick) => element("button", { type: "button", textContent, onclick });
    const box = (text, checked, onchange) => {
      const input = element("input", { type: "checkbox", checked, onchange: () => onchange(input.checked) });
      return element("label", {}, input, ` ${text}`);
    };
    this.canvas = element("canvas", { role: "img", ariaLabel: `Scrolling notes: ${keys} keys, ${notes} notes` });
    this.sheet = element("ol", { className: "preview-sheet", ariaLabel: "Sheet of the whole chart" });
    this.strip = element("canvas", { ariaHidden: "true" });
    const max = Math.max(1, lengthMs);
    this.seekBar = element("input", { type: "range", max, step: 500, value: 0, ariaLabel: "Position" });
    this.time = element("span", { className: "preview-time" });
    this.playButton = button("Play", () => (this.isPlaying ? this.pause() : this.play()));
    this.playButton.className = "primary";
    this.sheetButton = button("Sheet", () => this.setSheet(!this.isSheet));
    const speed = element("input", { type: "range", min: 5, max: 40, value: this.speed });
    speed.oninput = () => this.change(() => (this.speed = Number(speed.value)));
    const rates = [0.5, 0.75, 1, 1.25, 1.5].map((rate) => new Option(`${rate}×`, rate, rate === 1, rate === 1));
    const tempo = element("select", {}, ...rates);
    tempo.onchange = () => (this.rate = Number(tempo.value));
    const controls = element("div", { className: "preview-controls" }, this.playButton, this.sheetButton, this.time,
      element("label", {}, "Speed ", speed), element("label", {}, "Tempo ", tempo),
      box("Scroll up", false, (isUp) => this.change(() => (this.isUp = isUp))),
      box("Ticks", false, (isOn) => this.setTicks(isOn)),
      button("Loop from here", () => this.setLoop(this.now, this.loop[1])),
      button("Loop to here", () => this.setLoop(this.loop[0], this.now)),
      button("No loop", () => this.setLoop(-1, -1)), button("Copy link to this moment", () => this.copyLink()));
    const changes = box("Scroll speed changes", true, (isOn) => this.change(() => this.layOut(isOn)));
    if (scroll.length) controls.append(changes);
    this.stage = element("div", { className: "preview-stage" }, this.canvas);
    this.section.append(this.stage, this.sheet,
      element("div", { className: "preview-timeline" }, this.strip, this.seekBar), controls);
  }

  listen() {
    this.seekBar.oninput = () => this.seek(Number(this.seekBar.value));
    document.addEventListener("visibilitychange", () => document.hidden && this.pause());
    window.addEventListener("hashchange", () => this.openMoment());
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
    new ResizeObserver(() => this.resize()).observe(this.section);
    const repaint = () => this.change(() => this.readColours());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    matchMedia("(forced-colors: active)").addEventListener("change", repaint);
    new MutationObserver(repaint).observe(document.documentElement, { attributes: true });
  }

  /** Compares the note hash of the notes with the address of the page. */
  async verify() {
    const { dataset } = this.section;
    const { hashCanonicalNotes } = await import(dataset.noteHashModule);
    const isSame = hashCanonicalNotes(this.chart.keys, canonicalNotes(this.chart)) === dataset.hash;
    this.section.dataset.verified = isSame;
    if (!isSame) this.message.textContent = "These notes do not have the note hash of this page.";
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
    this.noteColours = Array.from(COLOURS[this.chart.keys], (number) => this.colours[`note-${number}`]);
  }

  layOut(hasChanges) {
    this.positionOf = scrollPosition(hasChanges ? this.chart.scroll : []);
    this.columns = this.chart.columns.map((column) => layOut(column, this.positionOf));
    this.measures = Float64Array.from(this.chart.measures, this.positionOf).sort();
  }

  /** Changes what is shown, and draws it. */
  change(apply) {
    apply();
    this.isSheet ? this.drawSheet() : this.draw();
    this.drawStrip();
  }

  resize() {
    for (const canvas of [this.canvas, this.strip]) {
      canvas.width = Math.max(1, Math.round(canvas.clientWidth * devicePixelRatio));
      canvas.height = Math.max(1, Math.round(canvas.clientHeight * devicePixelRatio));
    }
    this.draw();
    this.drawStrip();
  }

  play() {
    if (this.isSheet) this.setSheet(false);
    if (this.now <= 0 || this.now >= this.chart.lengthMs) this.seek(-LEAD_MS);
    this.isPlaying = true;
    this.playButton.textContent = "Pause";
    this.nextTick = lastAtMost(this.onsets, this.now) + 1;
    this.last = performance.now();
    requestAnimationFrame(this.frame);
  }

  pause() {
    this.isPlaying = false;
    this.playButton.textContent = "Play";
    this.showTime();
  }

  frame(timestamp) {
    if (!this.isPlaying) return;
    this.now += Math.max(0, timestamp - this.last) * this.rate;
    this.last = Math.max(timestamp, this.last);
    if (this.hasLoop() && this.now >= this.loop[1]) this.seek(this.loop[0]);
    if (this.now > this.chart.lengthMs + LEAD_MS) this.pause();
    this.draw();
    if (this.audio) this.tick();
    // The text and the slider, whose layout costs more than the notes, follow four times a second.
    if (Math.abs(this.now - this.shown) >= 250) this.showTime();
    requestAnimationFrame(this.frame);
  }

  seek(now) {
    this.now = now;
    this.nextTick = lastAtMost(this.onsets, now - 1) + 1;
    this.showTime();
    this.isSheet ? this.markMoment() : this.draw();
  }

  showTime() {
    this.shown = this.now;
    // Rounded, as on the rest of the page.
    const length = clock(this.chart.lengthMs + 500);
    this.seekBar.value = this.now;
    this.time.textContent = `${clock(this.now)} / ${length}`;
    this.seekBar.ariaValueText = `${clock(this.now)} of ${length}`;
  }

  draw() {
    const { context, canvas, colours, columns } = this;
    const { width, height } = canvas;
    const lane = width / columns.length;
    const thickness = Math.max(3, Math.round(lane / 4));
    const line = height - 2 * thickness;
    const scale = (line * this.speed) / VISIBLE_MS;
    const here = this.positionOf(this.now);
    context.setTransform(1, 0, 0, this.isUp ? -1 : 1, 0, this.isUp ? height : 0);
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
    for (let column = 0; column < columns.length; column += 1) {
      context.fillStyle = this.noteColours[column];
      this.drawColumn(columns[column], column * lane, lane, line, scale, here, thickness);
    }
  }

  /** Draws the notes of a column that have not ended yet and lie above the line. */
  drawColumn(notes, x, lane, line, scale, here, thickness) {
    const { context, now } = this;
    const highest = here + (line + thickness) / scale;
    // Where the scroll speed is 0, notes stay at the line until they are played.
    for (let index = lastAtMost(notes.reach, here - 1) + 1; notes.low[index] <= highest; index += 1) {
      const end = notes.ends[index];
      if ((end < 0 ? notes.starts[index] : end) < now) continue;
      const bottom = line - Math.max(0, notes.low[index] - here) * scale;
      if (end >= 0) {
        const top = Math.max(0, line - (notes.high[index] - here) * scale);
        context.fillRect(x + lane / 4, top, lane / 2, bottom - top);
      }
      context.fillRect(x + 1, bottom - thickness, lane - 2, thickness);
    }
  }

  drawStrip() {
    const { strip, colours, loop, chart } = this;
    const context = strip.getContext("2d");
    const { width, height } = strip;
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, width, height);
    const toX = (ms) => (ms / Math.max(1, chart.lengthMs)) * width;
    context.fillStyle = colours.loop;
    for (const ms of loop) if (ms >= 0) context.fillRect(toX(ms) - 1, 0, 3, height);
    if (this.hasLoop()) context.fillRect(toX(loop[0]), 0, toX(loop[1] - loop[0]), height / 8);
    context.fillStyle = colours.density;
    const bar = 2 * devicePixelRatio;
    const barMs = (bar / width) * chart.lengthMs;
    // In a shorter time single notes look like density.
    const windowMs = Math.max(1000, barMs);
    for (let x = 0; x < width; x += bar) {
      const from = ((x + bar / 2) / width) * chart.lengthMs - windowMs / 2;
      const notes = lastAtMost(this.noteStarts, from + windowMs) - lastAtMost(this.noteStarts, from);
      const top = height * (1 - Math.sqrt(Math.min(1, (notes * 1000) / windowMs / MAX_DENSITY)));
      context.fillRect(x, top, bar, height - top);
    }
  }

  setSheet(isSheet) {
    this.isSheet = isSheet;
    if (isSheet) this.pause();
    this.sheetButton.ariaPressed = String(isSheet);
    this.stage.hidden = isSheet;
    this.sheet.hidden = !isSheet;
    this.section.dataset.view = isSheet ? "sheet" : "notes";
    this.resize();
    if (isSheet) this.drawSheet();
  }

  drawSheet() {
    const { chart } = this;
    this.stripMs = Math.max(SHEET_STRIP * 10, Math.ceil(chart.lengthMs / SHEET_STRIPS));
    const count = Math.floor(chart.lengthMs / this.stripMs) + 1;
    const strips = Array.from({ length: count }, (_, index) => this.drawSheetStrip(index * this.stripMs, this.stripMs));
    this.sheet.replaceChildren(...strips);
    this.markMoment();
  }

  drawSheetStrip(from, stripMs) {
    const { chart, colours } = this;
    const canvas = element("canvas", { ariaHidden: "true" });
    canvas.width = chart.keys * SHEET_COLUMN * devicePixelRatio;
    canvas.height = SHEET_STRIP * devicePixelRatio;
    const context = canvas.getContext("2d");
    const scale = SHEET_STRIP / stripMs;
    // Later is higher, as in the scrolling view.
    const toY = (ms) => (this.isUp ? (ms - from) * scale : SHEET_STRIP - (ms - from) * scale);
    context.scale(devicePixelRatio, devicePixelRatio);
    const fill = (colour, x, y, width, height) => {
      context.fillStyle = colour;
      context.fillRect(x, y, width, height);
    };
    fill(colours.ground, 0, 0, chart.keys * SHEET_COLUMN, SHEET_STRIP);
    for (let index = lastAtMost(chart.measures, from - 1) + 1; chart.measures[index] < from + stripMs; index += 1) {
      fill(colours.measure, 0, toY(chart.measures[index]), chart.keys * SHEET_COLUMN, 1);
    }
    chart.columns.forEach(({ starts, ends }, column) => {
      const colour = this.noteColours[column];
      const x = column * SHEET_COLUMN;
      for (let index = Math.max(0, lastAtMost(starts, from - 1)); starts[index] < from + stripMs; index += 1) {
        const [start, end] = [toY(starts[index]), toY(Math.min(ends[index], from + stripMs))];
        if (ends[index] >= from) fill(colour, x + 3, Math.min(start, end), SHEET_COLUMN - 6, Math.abs(end - start));
        if (starts[index] >= from) fill(colour, x + 1, start - 2, SHEET_COLUMN - 2, 3);
      }
    });
    return element("li", {}, element("a", { href: `#t=${from / 1000}`, textContent: clock(from) }), canvas);
  }

  /** Marks the strip of the current moment. */
  markMoment() {
    const current = Math.floor(Math.max(0, this.now) / this.stripMs);
    [...this.sheet.children].forEach((strip, index) => (strip.ariaCurrent = index === current ? "true" : null));
  }

  /** Paper shows the sheet. */
  print(isStarting) {
    if (isStarting) this.pause();
    this.readColours(isStarting);
    this.sheet.hidden = !isStarting && !this.isSheet;
    this.stage.hidden = isStarting || this.isSheet;
    if (isStarting || this.isSheet) this.drawSheet();
    this.drawStrip();
  }

  hasLoop() {
    return this.loop[0] >= 0 && this.loop[1] > this.loop[0];
  }

  setLoop(from, to) {
    this.loop = [from, to];
    const isNone = from < 0 && to < 0;
    const isSet = `Loops from ${clock(from)} to ${clock(to)}.`;
    const isIncomplete = isNone ? "No loop." : "A loop needs a start, and an end after it.";
    this.message.textContent = this.hasLoop() ? isSet : isIncomplete;
    this.drawStrip();
  }

  setTicks(isOn) {
    this.audio?.close();
    this.audio = isOn ? new AudioContext() : undefined;
    if (!isOn) return;
    const { sampleRate } = this.audio;
    this.click = this.audio.createBuffer(1, sampleRate / 50, sampleRate);
    const samples = this.click.getChannelData(0);
    samples.forEach((_, index) => (samples[index] = 0.3 * Math.sin(index / 4) * Math.exp(-index / 100)));
  }

  /** Schedules the ticks of the next moment by the clock of the audio. */
  tick() {
    for (; this.onsets[this.nextTick] <= this.now + TICK_AHEAD_MS * this.rate; this.nextTick += 1) {
      const source = this.audio.createBufferSource();
      source.buffer = this.click;
      source.connect(this.audio.destination);
      source.start(this.audio.currentTime + Math.max(0, this.onsets[this.nextTick] - this.now) / this.rate / 1000);
    }
  }

  async copyLink() {
    const address = new URL(location);
    address.hash = `t=${Number((Math.max(0, this.now) / 1000).toFixed(1))}`;
    history.replaceState(history.state, "", address);
    const copied = await navigator.clipboard?.writeText(address.href).then(() => true, () => false);
    const moment = `ink to ${clock(this.now)}`;
    this.message.textContent = copied ? `L${moment} copied.` : `The address of this page is now a l${moment}.`;
  }

  openMoment() {
    const [, seconds] = /^#t=(\d+(?:\.\d+)?)$/.exec(location.hash) ?? [];
    this.seek(seconds === undefined ? this.now : Math.min(Number(seconds) * 1000, this.chart.lengthMs));
    if (seconds !== undefined) this.section.scrollIntoView({ block: "nearest" });
  }
}
