// Draws a chart from its preview (docs/formats/preview.md): scrolling as in the game, or as a sheet.

import { NOTE_COLOURS, decode, densestSecond, lastAtMost, layOut, scrollPosition, snapOf } from "./preview_notes.js";

const SHEET_STRIP = 480; // CSS pixels
const SHEET_COLUMN = 10;
const SHEET_STRIP_MS = 4800;
const SHEET_PAGE = 40; // strips
const LEAD_MS = 1000;
const HIT_AHEAD_MS = 120;
const HIT_VOLUME = 5; // of 10
const RATES = [0.5, 0.75, 1, 1.25, 1.5];
// At speed 1 a note is visible for this time, as in the first game.
const VISIBLE_MS = 11_485;
const PALETTE = ["note-1", "note-2", "note-3", "snap-0", "snap-1", "snap-2", "snap-3", "snap-4", "ground", "line", "measure"];

/**
 * Fills the section, of which the page sets the data attributes, and #stage. Without notes the section shows its
 * curve only.
 *
 * @param {HTMLElement} section #preview
 * @param {{get(name: string): string | null, set(name: string, value: string): void}} stored preferences
 */
export async function start(section, stored) {
  const message = element("p", { className: "preview-message", role: "status" });
  const transport = section.querySelector(".transport");
  transport.replaceChildren(message);
  let chart;
  try {
    const response = await fetch(section.dataset.preview);
    if (!response.ok) throw new Error(`status ${response.status}`);
    chart = decode(await response.json());
  } catch {
    const retry = element("button", { type: "button", textContent: "Try again", onclick: () => start(section, stored) });
    message.replaceChildren("The notes could not be loaded. ", retry);
    section.dataset.view = "curve";
    return;
  }
  const preview = new Preview(section, transport, message, chart, stored);
  preview.verify();
  const { addBand } = await import(section.dataset.bandModule);
  addBand(section.querySelector(".timeline"), chart, preview.starts);
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
  constructor(section, transport, message, chart, stored) {
    Object.assign(this, { section, transport, message, chart, stored, now: 0, last: 0, rate: 1, loop: [-1, -1] });
    Object.assign(this, { isPlaying: false, isSheet: false, page: 0 });
    this.speed = Number(stored.get("speed")) || 18;
    this.isUp = stored.get("direction") === "up";
    this.volume = Number(stored.get("ticks"));
    this.frame = this.frame.bind(this);
    this.isBySnap = stored.get("colours") === "snap";
    this.starts = Float64Array.from(chart.columns.flatMap(({ starts }) => Array.from(starts))).sort();
    const { starts } = this;
    this.densest = densestSecond(starts);
    this.onsets = Float64Array.from(new Set(starts));
    this.build(starts.length);
    this.context = this.canvas.getContext("2d");
    this.layOut(true);
    this.listen();
    this.readColours();
    this.openMoment();
    this.setSheet(matchMedia("(prefers-reduced-motion: reduce)").matches);
  }

  build(notes) {
    const { keys, lengthMs, scroll } = this.chart;
    const button = (textContent, onclick) => element("button", { type: "button", textContent, onclick });
    const box = (text, checked, onchange) => {
      const input = element("input", { type: "checkbox", checked, onchange: () => onchange(input.checked) });
      return element("label", {}, input, ` ${text}`);
    };
    const slider = (text, min, max, value, oninput) => {
      const input = element("input", { type: "range", min, max, value, oninput: () => oninput(input.valueAsNumber) });
      return element("label", {}, `${text} `, input);
    };
    this.canvas = element("canvas", { role: "img", ariaLabel: `Scrolling notes: ${keys} keys, ${notes} notes` });
    this.canvas.onclick = () => this.toggle();
    this.sheet = element("ol", { className: "preview-sheet", ariaLabel: "Sheet of the chart" });
    this.pages = element("p", { className: "preview-pages" });
    const max = Math.max(1, lengthMs);
    this.seekBar = element("input", { type: "range", max, step: 500, value: 0, ariaLabel: "Position" });
    this.loopBar = element("div", { className: "preview-loop" });
    this.time = element("span", { className: "preview-time" });
    this.playButton = button("Play", () => this.toggle());
    this.playButton.className = "primary";
    this.loopButtons = [0, 1].map((end) => button("", () => this.setLoop(end, this.now)));
    this.clearButton = button("×", () => this.setLoop());
    this.clearButton.ariaLabel = "Clear loop";
    this.hitsButton = button("Hits", () => this.setVolume(this.volume ? 0 : HIT_VOLUME));
    this.sheetButton = button("Sheet", () => {
      this.setSheet(!this.isSheet);
      if (this.isSheet) this.sheet.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    });
    this.shareButton = button("", () => this.copyLink());
    this.shareButton.className = "share";
    this.rates = element("select", {}, ...RATES.map((rate) => new Option(`${rate}×`, rate, rate === 1, rate === 1)));
    this.rates.onchange = () => this.setRate(Number(this.rates.value));
    const volume = slider("Volume of hits", 0, 10, this.volume, (value) => this.setVolume(value));
    this.volumeSlider = volume.control;
    const settings = element("details", { className: "preview-settings" },
      element("summary", { textContent: "Settings" }),
      volume,
      box("Colours by beat", this.isBySnap, (isOn) => this.prefer("colours", () => (this.isBySnap = isOn) && "snap")),
      box("Scroll up", this.isUp, (isUp) => this.prefer("direction", () => (this.isUp = isUp) && "up")));
    const changes = box("Scroll speed changes", true, (isOn) => this.change(() => this.layOut(isOn)));
    if (scroll.length) settings.append(changes);
    this.transport.prepend(this.playButton, this.time, this.hitsButton, ...this.loopButtons, this.clearButton,
      element("span", { className: "preview-gap" }),
      slider("Scroll", 5, 40, this.speed, (speed) => this.prefer("speed", () => (this.speed = speed))),
      element("label", {}, "Rate ", this.rates), this.sheetButton, this.shareButton, settings);
    this.section.querySelector(".timeline")?.append(this.loopBar, this.seekBar);
    if (!this.seekBar.isConnected) this.transport.before(element("div", { className: "timeline" }, this.loopBar, this.seekBar));
    document.querySelector("#stage").replaceChildren(this.canvas, this.pages, this.sheet);
    this.showLoop();
    this.showHits();
  }

  listen() {
    this.seekBar.oninput = () => this.seek(Number(this.seekBar.value));
    document.addEventListener("visibilitychange", () => document.hidden && this.pause());
    document.addEventListener("keydown", (event) => {
      const isTaken = event.target.closest("a, button, input, select, summary, textarea, dialog, .scroll");
      const steps = { " ": 0, ArrowLeft: -1000, ArrowRight: 1000 }[event.key];
      if (steps === undefined || event.ctrlKey || event.metaKey || event.altKey || isTaken) return;
      event.preventDefault();
      if (steps) this.seek(Math.min(Math.max(0, this.now + steps), this.chart.lengthMs));
      else this.toggle();
    });
    window.addEventListener("hashchange", () => this.openMoment());
    // A link to the moment of the address changes no hash.
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.("a");
      // Another chart of the set begins at the same moment, at the same rate.
      if (link?.closest(".siblings")) link.hash = this.fragment(true);
      if (link?.href === location.href) this.openMoment();
    });
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
    // The style sheet may arrive after this module.
    const onSize = () => {
      this.readColours();
      this.resize();
    };
    new ResizeObserver(onSize).observe(this.canvas);
    const repaint = () => this.change(() => this.readColours());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    matchMedia("(forced-colors: active)").addEventListener("change", repaint);
    new MutationObserver(repaint).observe(document.documentElement, { attributes: true });
  }

  /** Compares the note hash of the notes with the address of the page, in a worker. A frame in a sandbox has none. */
  verify() {
    const { dataset } = this.section;
    let worker;
    try {
      worker = new Worker(dataset.verifyModule, { type: "module" });
    } catch {
      return;
    }
    worker.onmessage = ({ data: hash }) => {
      worker.terminate();
      const isSame = hash === dataset.hash;
      dataset.verified = isSame;
      if (!isSame) this.message.textContent = "These notes do not have the note hash of this page.";
    };
    const { keys, columns } = this.chart;
    worker.postMessage({ keys, columns });
  }

  /** Changes a preference, which later visits have as well. */
  prefer(name, apply) {
    this.change(() => this.stored.set(name, String(apply() || "")));
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

  /** Changes what is shown, and draws it. */
  change(apply) {
    apply();
    this.isSheet ? this.drawSheet() : this.draw();
  }

  resize() {
    const { canvas } = this;
    canvas.width = Math.max(1, Math.round(canvas.clientWidth * devicePixelRatio));
    canvas.height = Math.max(1, Math.round(canvas.clientHeight * devicePixelRatio));
    this.draw();
  }

  toggle() {
    this.isPlaying ? this.pause() : this.play();
  }

  play() {
    if (this.isSheet) this.setSheet(false);
    if (this.now <= 0 || this.now >= this.chart.lengthMs) this.seek(-LEAD_MS);
    this.readyHits();
    this.isPlaying = true;
    this.showPlay();
    this.nextHit = lastAtMost(this.onsets, this.now) + 1;
    this.last = performance.now();
    requestAnimationFrame(this.frame);
  }

  pause() {
    this.isPlaying = false;
    this.showPlay();
    this.showTime();
  }

  showPlay() {
    this.playButton.textContent = this.isPlaying ? "Pause" : "Play";
    this.playButton.classList.toggle("playing", this.isPlaying);
  }

  frame(timestamp) {
    if (!this.isPlaying) return;
    this.now += Math.max(0, timestamp - this.last) * this.rate;
    this.last = Math.max(timestamp, this.last);
    if (this.hasLoop() && this.now >= this.loop[1]) this.seek(this.loop[0]);
    if (this.now > this.chart.lengthMs + LEAD_MS) this.pause();
    this.draw();
    if (this.volume) this.hit();
    // The text and the slider, whose layout costs more than the notes, follow four times a second.
    if (Math.abs(this.now - this.shown) >= 250) this.showTime();
    requestAnimationFrame(this.frame);
  }

  seek(now) {
    this.now = now;
    this.nextHit = lastAtMost(this.onsets, now - 1) + 1;
    this.showTime();
    this.isSheet ? this.markMoment() : this.draw();
  }

  showTime() {
    this.shown = this.now;
    // Rounded, as on the rest of the page.
    const length = clock(this.chart.lengthMs + 500);
    this.seekBar.value = this.now;
    this.time.textContent = `${clock(this.now)} / ${length}`;
    this.shareButton.textContent = `Share ${clock(this.now)}`;
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
    context.fillStyle = colours.measure;
    for (let column = 0; column < columns.length; column += 1) this.bar(column * lane, line, lane, thickness);
    for (let column = 0; column < columns.length; column += 1) {
      context.fillStyle = this.noteColours[column];
      this.drawColumn(columns[column], column * lane, lane, line, scale, here, thickness);
    }
  }

  /** A note, or the place where notes are played. */
  bar(x, bottom, lane, thickness) {
    this.context.beginPath();
    this.context.roundRect(x + 2, bottom - thickness, lane - 4, thickness, thickness / 4);
    this.context.fill();
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
      if (this.isBySnap) context.fillStyle = this.colours[`snap-${snapOf(this.chart.timing, notes.starts[index])}`];
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

  setSheet(isSheet) {
    this.isSheet = isSheet;
    if (isSheet) this.pause();
    this.sheetButton.ariaPressed = String(isSheet);
    this.canvas.hidden = isSheet;
    this.sheet.hidden = this.pages.hidden = !isSheet;
    this.section.dataset.view = isSheet ? "sheet" : "notes";
    this.resize();
    if (isSheet) this.markMoment();
  }

  /** Draws a page of strips of the same scale in every chart; on paper all pages. */
  drawSheet(isPrinted = false) {
    const all = Math.floor(this.chart.lengthMs / SHEET_STRIP_MS) + 1;
    const first = isPrinted ? 0 : this.page * SHEET_PAGE;
    const count = isPrinted ? all : Math.min(SHEET_PAGE, all - first);
    const strips = Array.from({ length: count }, (_, index) => this.drawSheetStrip((first + index) * SHEET_STRIP_MS));
    this.sheet.replaceChildren(...strips);
    const turn = (text, page) => element("button", { type: "button", textContent: text, disabled: page < 0 || page * SHEET_PAGE >= all,
      onclick: () => this.seek(page * SHEET_PAGE * SHEET_STRIP_MS) });
    const shown = ` ${clock(first * SHEET_STRIP_MS)} to ${clock((first + count) * SHEET_STRIP_MS)} `;
    this.pages.replaceChildren(turn("Earlier", this.page - 1), shown, turn("Later", this.page + 1));
    this.pages.hidden = !this.isSheet || all <= SHEET_PAGE;
  }

  drawSheetStrip(from) {
    const { chart, colours } = this;
    const canvas = element("canvas", { ariaHidden: "true" });
    canvas.width = chart.keys * SHEET_COLUMN * devicePixelRatio;
    canvas.height = SHEET_STRIP * devicePixelRatio;
    const context = canvas.getContext("2d");
    const scale = SHEET_STRIP / SHEET_STRIP_MS;
    // Later is higher, as in the scrolling view.
    const toY = (ms) => (this.isUp ? (ms - from) * scale : SHEET_STRIP - (ms - from) * scale);
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
    return element("li", {}, element("a", { href: `#t=${from / 1000}`, textContent: clock(from) }), canvas);
  }

  /** Shows the page of the current moment, and marks its strip. */
  markMoment() {
    const current = Math.floor(Math.max(0, this.now) / SHEET_STRIP_MS);
    const page = Math.floor(current / SHEET_PAGE);
    if (page !== this.page || !this.sheet.hasChildNodes()) {
      this.page = page;
      this.drawSheet();
    }
    [...this.sheet.children].forEach((strip, index) => (strip.ariaCurrent = index === current % SHEET_PAGE ? "true" : null));
  }

  /** Paper shows the sheet. */
  print(isStarting) {
    if (isStarting) this.pause();
    this.readColours(isStarting);
    this.sheet.hidden = !isStarting && !this.isSheet;
    this.canvas.hidden = isStarting || this.isSheet;
    if (isStarting || this.isSheet) this.drawSheet(isStarting);
  }

  hasLoop() {
    return this.loop[0] >= 0 && this.loop[1] > this.loop[0];
  }

  /** Sets the start (0) or the end (1) of the loop; without arguments there is none. */
  setLoop(end, now) {
    if (end === undefined) this.loop = [-1, -1];
    else this.loop[end] = now;
    this.showLoop();
    this.showAddress(location.hash.includes("t="));
  }

  setRate(rate) {
    this.rate = rate;
    this.rates.value = rate;
    this.showAddress(location.hash.includes("t="));
  }

  showLoop() {
    const { loop } = this;
    ["A", "B"].forEach((name, end) => {
      const button = this.loopButtons[end];
      button.textContent = loop[end] < 0 ? name : `${name} ${clock(loop[end])}`;
      button.ariaLabel = `${button.textContent}: loop ${end ? "to" : "from"} here`;
    });
    this.clearButton.hidden = loop[0] < 0 && loop[1] < 0;
    // A loop that has only one end yet is a line.
    const [from, to] = [loop[0] < 0 ? loop[1] : loop[0], loop[1] < loop[0] ? loop[0] : loop[1]];
    const percent = (ms) => `${(100 * ms) / Math.max(1, this.chart.lengthMs)}%`;
    this.loopBar.hidden = to < 0;
    Object.assign(this.loopBar.style, { left: percent(from), width: percent(to - from) });
  }

  setVolume(volume) {
    this.prefer("ticks", () => (this.volume = volume));
    this.readyHits();
    this.showHits();
  }

  showHits() {
    this.hitsButton.ariaPressed = String(this.volume > 0);
    this.volumeSlider.value = this.volume;
  }

  /** Readies the sound of hits, which browsers allow after a press only. */
  readyHits() {
    if (!this.volume) return void this.audio?.suspend();
    this.audio ??= new AudioContext();
    this.audio.resume();
    const { sampleRate } = this.audio;
    this.click = this.audio.createBuffer(1, sampleRate / 50, sampleRate);
    const samples = this.click.getChannelData(0);
    const loudness = 0.06 * this.volume;
    samples.forEach((_, index) => (samples[index] = loudness * Math.sin(index / 4) * Math.exp(-index / 100)));
  }

  /** Schedules the hits of the next moment by the clock of the audio. */
  hit() {
    for (; this.onsets[this.nextHit] <= this.now + HIT_AHEAD_MS * this.rate; this.nextHit += 1) {
      const source = this.audio.createBufferSource();
      source.buffer = this.click;
      source.connect(this.audio.destination);
      source.start(this.audio.currentTime + Math.max(0, this.onsets[this.nextHit] - this.now) / this.rate / 1000);
    }
  }

  /** What is shown as the fragment of an address, such as `t=12.5&rate=0.75&loop=10-14`; the times in seconds. */
  fragment(hasMoment) {
    const seconds = (ms) => Number((Math.max(0, ms) / 1000).toFixed(1));
    const parts = hasMoment ? [`t=${seconds(this.now)}`] : [];
    if (this.rate !== 1) parts.push(`rate=${this.rate}`);
    if (this.hasLoop()) parts.push(`loop=${this.loop.map(seconds).join("-")}`);
    return parts.join("&");
  }

  showAddress(hasMoment) {
    const address = new URL(location);
    address.hash = this.fragment(hasMoment);
    history.replaceState(history.state, "", address);
  }

  async copyLink() {
    this.showAddress(true);
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    const moment = `ink to ${clock(this.now)}`;
    this.message.textContent = copied ? `L${moment} copied.` : `The address of this page is now a l${moment}.`;
  }

  openMoment() {
    const fragment = new URLSearchParams(location.hash.slice(1));
    // What is no number is left out.
    const [time, from, to] = [fragment.get("t"), ...(fragment.get("loop")?.split("-") ?? [])]
      .map((text) => (/^\d+(\.\d+)?$/.test(text) ? Math.min(1000 * text, this.chart.lengthMs) : undefined));
    const rate = Number(fragment.get("rate"));
    if (RATES.includes(rate)) this.rates.value = this.rate = rate;
    if (from < to) this.loop = [from, to];
    this.showLoop();
    this.seek(time ?? (from < to ? from : this.now || this.densest));
    if (time !== undefined) this.section.scrollIntoView({ block: "nearest" });
  }
}
