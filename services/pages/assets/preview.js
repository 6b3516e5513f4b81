// Plays a chart from its preview (docs/formats/preview.md): scrolling as in the game, or as a sheet. Two charts
// that are compared have one clock.

import { decode, densestSecond, lastAtMost } from "./preview_notes.js";
import { SHEET_STRIP_MS, Stage } from "./preview_stage.js";

const SHEET_PAGE = 40; // strips
const LEAD_MS = 1000;
const HIT_AHEAD_MS = 120;
const HIT_VOLUME = 5; // of 10
const RATES = [0.5, 0.75, 1, 1.25, 1.5];

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
  const { hash, beside, bandModule, mapModule } = section.dataset;
  let charts;
  try {
    charts = await Promise.all([hash, beside].filter(Boolean).map(load));
  } catch {
    const retry = element("button", { type: "button", textContent: "Try again", onclick: () => start(section, stored) });
    message.replaceChildren("The notes could not be loaded. ", retry);
    section.dataset.view = "curve";
    return;
  }
  const preview = new Preview(section, transport, message, charts, stored);
  preview.verify();
  const [{ addBand }, { addMap }] = await Promise.all([import(bandModule), import(mapModule)]);
  // Of two charts, neither is the one that a moment is named by.
  if (!beside) addBand(section.querySelector(".timeline"), charts[0], preview.starts);
  preview.addMaps(addMap);
}

async function load(hash) {
  const response = await fetch(`/api/charts/${hash}/preview`);
  if (!response.ok) throw new Error(`status ${response.status}`);
  return decode(await response.json());
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
  constructor(section, transport, message, charts, stored) {
    Object.assign(this, { section, transport, message, stored, now: 0, last: 0, rate: 1, loop: [-1, -1] });
    Object.assign(this, { isPlaying: false, isSheet: false, page: 0, maps: [] });
    this.options = {
      speed: Number(stored.get("speed")) || 18,
      isUp: stored.get("direction") === "up",
      isBySnap: stored.get("colours") === "snap",
    };
    this.volume = Number(stored.get("ticks"));
    this.frame = this.frame.bind(this);
    this.stages = charts.map((chart) => new Stage(chart, this.options));
    this.lengthMs = Math.max(...charts.map(({ lengthMs }) => lengthMs));
    // Hits, and the moment at which it begins, are those of the first chart.
    this.starts = Float64Array.from(charts[0].columns.flatMap(({ starts }) => Array.from(starts))).sort();
    this.densest = densestSecond(this.starts);
    this.onsets = Float64Array.from(new Set(this.starts));
    this.build(charts);
    this.listen();
    this.readColours();
    this.openMoment();
    this.setSheet(matchMedia("(prefers-reduced-motion: reduce)").matches);
  }

  build(charts) {
    const { options, stages } = this;
    const button = (textContent, onclick) => element("button", { type: "button", textContent, onclick });
    const box = (text, checked, onchange) => {
      const input = element("input", { type: "checkbox", checked, onchange: () => onchange(input.checked) });
      return element("label", {}, input, ` ${text}`);
    };
    const slider = (text, min, max, value, oninput) => {
      const input = element("input", { type: "range", min, max, value, oninput: () => oninput(input.valueAsNumber) });
      return element("label", {}, `${text} `, input);
    };
    for (const { canvas } of stages) canvas.onclick = () => this.toggle();
    this.sheet = element("ol", { className: "preview-sheet", ariaLabel: "Sheet of the chart" });
    this.pages = element("p", { className: "preview-pages" });
    this.seekBar = element("input", { type: "range", max: Math.max(1, this.lengthMs), step: 500, value: 0, ariaLabel: "Position" });
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
      box("Colours by beat", options.isBySnap, (isOn) => this.prefer("colours", () => (options.isBySnap = isOn) && "snap")),
      box("Scroll up", options.isUp, (isUp) => this.prefer("direction", () => (options.isUp = isUp) && "up")));
    const changes = box("Scroll speed changes", true, (isOn) => this.change(() => stages.forEach((stage) => stage.layOut(isOn))));
    if (charts.some(({ scroll }) => scroll.length)) settings.append(changes);
    this.transport.prepend(this.playButton, this.time, this.hitsButton, ...this.loopButtons, this.clearButton,
      element("span", { className: "preview-gap" }),
      slider("Scroll", 5, 40, options.speed, (speed) => this.prefer("speed", () => (options.speed = speed))),
      element("label", {}, "Rate ", this.rates), this.sheetButton, this.shareButton, settings);
    this.section.querySelector(".timeline")?.append(this.loopBar, this.seekBar);
    if (!this.seekBar.isConnected) this.transport.before(element("div", { className: "timeline" }, this.loopBar, this.seekBar));
    document.querySelector("#stage").replaceChildren(...stages.map(({ canvas }) => canvas), this.pages, this.sheet);
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
      if (steps) this.seek(Math.min(Math.max(0, this.now + steps), this.lengthMs));
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
    const sizes = new ResizeObserver(onSize);
    for (const { canvas } of this.stages) sizes.observe(canvas);
    const repaint = () => this.change(() => this.readColours());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    matchMedia("(forced-colors: active)").addEventListener("change", repaint);
    new MutationObserver(repaint).observe(document.documentElement, { attributes: true });
  }

  /** Compares the note hash of the notes with the address of the page, in a worker. A frame in a sandbox has none. */
  verify() {
    const { dataset } = this.section;
    this.stages.forEach(({ chart: { keys, columns } }, index) => {
      let worker;
      try {
        worker = new Worker(dataset.verifyModule, { type: "module" });
      } catch {
        return;
      }
      worker.onmessage = ({ data: hash }) => {
        worker.terminate();
        const isSame = hash === [dataset.hash, dataset.beside][index];
        dataset.verified = isSame && dataset.verified !== "false";
        if (!isSame) this.message.textContent = "These notes do not have the note hash of this page.";
      };
      worker.postMessage({ keys, columns });
    });
  }

  /** Adds the whole of each chart beside its stage. */
  addMaps(addMap) {
    this.maps = this.stages.map((stage) => addMap(stage, this.lengthMs, (now) => this.seek(now)));
    for (const map of this.maps) map.move(this.now);
  }

  /** Changes a preference, which later visits have as well. */
  prefer(name, apply) {
    this.change(() => this.stored.set(name, String(apply() || "")));
  }

  readColours(isPrinted = false) {
    for (const stage of this.stages) stage.readColours(isPrinted);
  }

  /** Changes what is shown, and draws it. */
  change(apply) {
    apply();
    for (const map of this.maps) map.draw();
    this.isSheet ? this.drawSheet() : this.draw();
  }

  resize() {
    for (const stage of this.stages) stage.resize();
    this.draw();
  }

  toggle() {
    this.isPlaying ? this.pause() : this.play();
  }

  play() {
    if (this.isSheet) this.setSheet(false);
    if (this.now <= 0 || this.now >= this.lengthMs) this.seek(-LEAD_MS);
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
    if (this.now > this.lengthMs + LEAD_MS) this.pause();
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
    const length = clock(this.lengthMs + 500);
    this.seekBar.value = this.now;
    this.time.textContent = `${clock(this.now)} / ${length}`;
    this.shareButton.textContent = `Share ${clock(this.now)}`;
    this.seekBar.ariaValueText = `${clock(this.now)} of ${length}`;
  }

  draw() {
    for (const stage of this.stages) stage.draw(this.now);
    for (const map of this.maps) map.move(this.now);
  }

  setSheet(isSheet) {
    this.isSheet = isSheet;
    if (isSheet) this.pause();
    this.sheetButton.ariaPressed = String(isSheet);
    this.showCanvases(!isSheet);
    this.sheet.hidden = this.pages.hidden = !isSheet;
    this.section.dataset.view = isSheet ? "sheet" : "notes";
    this.resize();
    if (isSheet) this.markMoment();
  }

  showCanvases(areShown) {
    for (const { canvas } of this.stages) canvas.hidden = !areShown;
  }

  /** Draws a page of strips of the same scale in every chart; on paper all pages. */
  drawSheet(isPrinted = false) {
    const all = Math.floor(this.lengthMs / SHEET_STRIP_MS) + 1;
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
    const canvases = this.stages.map((stage) => stage.sheetStrip(from));
    return element("li", {}, element("a", { href: `#t=${from / 1000}`, textContent: clock(from) }), ...canvases);
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
    this.showCanvases(!isStarting && !this.isSheet);
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
    const percent = (ms) => `${(100 * ms) / Math.max(1, this.lengthMs)}%`;
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
      .map((text) => (/^\d+(\.\d+)?$/.test(text) ? Math.min(1000 * text, this.lengthMs) : undefined));
    const rate = Number(fragment.get("rate"));
    if (RATES.includes(rate)) this.rates.value = this.rate = rate;
    if (from < to) this.loop = [from, to];
    this.showLoop();
    this.seek(time ?? (from < to ? from : this.now || this.densest));
    if (time !== undefined) this.section.scrollIntoView({ block: "nearest" });
  }
}
