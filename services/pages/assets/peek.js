// Four seconds around the densest second of a chart, beside its strip in a list: where the pointer rests, at the
// focus, and while a finger holds.

import { NOTE_COLOURS, decode, densestSecond, lastAtMost } from "./preview_notes.js";

const DELAY_MS = 250;
const LENGTH_MS = 4000;
/** How long before the densest second it begins. */
const LEAD_MS = 1500;
/** How long a note is visible. */
const VISIBLE_MS = 640;
const LANE = 16; // CSS pixels
const HEIGHT = 170;
const ROWS = ".charts li, .charts-table tbody tr";

/** What was asked for, by chart: each at most once, unless it was refused. A chart whose preview fails has null. */
const moments = new Map();
/** When the server accepts further requests, after it has refused one. */
let acceptsAt = 0;
/** The strip that is aimed at, and what is shown beside it. */
let aim = null;
let shown = null;
let timer = 0;
/** Whether the finger that is lifted has held, so that it does not follow the link below it. */
let hasHeld = false;

/** Watches the lists of the page; `event` is the first one at a strip. */
export function start(event) {
  const onPointer = (move) => move.pointerType !== "touch" && take(stripAt(move.target, move.clientX));
  const onFocus = ({ target }) => take(target.matches?.(":focus-visible") ? stripOf(target) : null);
  addEventListener("pointermove", onPointer, { passive: true });
  addEventListener("pointerdown", ({ pointerType, target, clientX }) => pointerType === "touch" && take(stripAt(target, clientX)), { passive: true });
  for (const end of ["pointerup", "pointercancel", "blur"]) {
    addEventListener(end, ({ pointerType }) => {
      hasHeld = pointerType === "touch" && shown !== null;
      if (pointerType !== "mouse") take(null);
    });
  }
  addEventListener("click", (click) => {
    if (hasHeld) click.preventDefault();
    hasHeld = false;
  }, { capture: true });
  document.documentElement.addEventListener("pointerleave", () => take(null));
  // What a long press would open otherwise.
  addEventListener("contextmenu", (menu) => aim && menu.pointerType === "touch" && menu.preventDefault());
  addEventListener("focusin", onFocus);
  addEventListener("focusout", () => take(null));
  addEventListener("scroll", close, { passive: true });
  addEventListener("keydown", ({ key }) => key === "Escape" && close());
  if (event.type === "focusin") onFocus(event);
  else if (event.pointerType === "touch") take(stripAt(event.target, event.clientX));
  else onPointer(event);
}

/** The strip of the row of a node. */
const stripOf = (node) => node.closest?.(ROWS)?.querySelector(".strip") ?? null;

/** The same, if the pointer is on it. The link of the row lies above the strip. */
function stripAt(node, x) {
  const strip = stripOf(node);
  const { left, right } = strip?.getBoundingClientRect() ?? {};
  return left <= x && x <= right ? strip : null;
}

function take(strip) {
  if (strip === aim) return;
  close();
  aim = strip;
  if (strip) timer = setTimeout(() => open(strip), DELAY_MS);
}

function close() {
  clearTimeout(timer);
  timer = 0;
  shown?.remove();
  shown = null;
}

async function open(strip) {
  const { pathname } = strip.closest(ROWS).querySelector("a[href^='/charts/']");
  const asked = timer;
  if (!moments.has(pathname) && performance.now() >= acceptsAt) moments.set(pathname, load(pathname));
  const moment = await moments.get(pathname);
  // It may have been closed meanwhile.
  if (moment && timer === asked && strip.isConnected) show(strip, moment);
}

/** The notes of these seconds, or null. */
async function load(pathname) {
  try {
    const response = await fetch(`/api${pathname}/preview`);
    if (response.status === 429) {
      acceptsAt = performance.now() + 1000 * (Number(response.headers.get("retry-after")) || 60);
      moments.delete(pathname);
    }
    if (!response.ok) return null;
    const { keys, columns } = decode(await response.json());
    const starts = Float64Array.from(columns.flatMap(({ starts }) => Array.from(starts))).sort();
    const densest = densestSecond(starts);
    const from = Math.max(0, densest - LEAD_MS);
    const cut = ({ starts, ends }) => {
      const range = [lastAtMost(starts, from - LENGTH_MS) + 1, lastAtMost(starts, from + LENGTH_MS + VISIBLE_MS) + 1];
      return { starts: starts.slice(...range), ends: ends.slice(...range) };
    };
    const count = lastAtMost(starts, densest + 999) - lastAtMost(starts, densest - 1);
    return { keys, from, densest, count, columns: columns.map(cut) };
  } catch {
    return null;
  }
}

function show(strip, moment) {
  const canvas = document.createElement("canvas");
  const seconds = Math.floor(moment.densest / 1000);
  const caption = document.createElement("p");
  caption.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} · ${moment.count}/s`;
  shown = document.createElement("div");
  shown.className = "peek";
  shown.ariaHidden = "true";
  shown.append(canvas, caption);
  document.body.append(shown);
  const [width, height] = [moment.keys * LANE, HEIGHT];
  Object.assign(canvas, { width: width * devicePixelRatio, height: height * devicePixelRatio });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  // Below the strip or above it, and to the left: in every list the levels are farther away.
  const at = strip.getBoundingClientRect();
  const { offsetWidth, offsetHeight } = shown;
  const isBelow = at.bottom + offsetHeight + 6 <= document.documentElement.clientHeight;
  shown.style.left = `${Math.max(4, at.right - offsetWidth)}px`;
  shown.style.top = `${isBelow ? at.bottom + 6 : Math.max(4, at.top - offsetHeight - 6)}px`;
  play(shown, canvas.getContext("2d"), moment, width, height);
}

function play(popup, context, { keys, from, columns }, width, height) {
  const style = getComputedStyle(popup);
  const colour = (name) => {
    popup.style.color = `var(--preview-${name})`;
    return style.color;
  };
  const colours = Array.from(NOTE_COLOURS[keys], (number) => colour(`note-${number}`));
  const line = colour("line");
  popup.style.color = "";
  context.scale(devicePixelRatio, devicePixelRatio);
  const bottom = height - 6;
  const toY = (time, now) => bottom - ((time - now) * bottom) / VISIBLE_MS;
  const first = performance.now();
  const frame = (timestamp) => {
    if (!popup.isConnected) return;
    const now = from + (Math.max(0, timestamp - first) % LENGTH_MS);
    context.clearRect(0, 0, width, height);
    context.fillStyle = line;
    context.fillRect(0, bottom, width, 1);
    columns.forEach(({ starts, ends }, column) => {
      context.fillStyle = colours[column];
      starts.forEach((start, index) => {
        const end = Math.max(start, ends[index]);
        if (end < now || start > now + VISIBLE_MS) return;
        const low = toY(Math.max(start, now), now);
        context.globalAlpha = 0.55;
        if (end > start) context.fillRect(column * LANE + 4, Math.max(0, toY(end, now)), LANE - 8, low - Math.max(0, toY(end, now)));
        context.globalAlpha = 1;
        context.fillRect(column * LANE + 1, low - 5, LANE - 2, 5);
      });
    });
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
