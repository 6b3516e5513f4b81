// The whole chart beside its stage: drawn once, under a marker that moves.

/**
 * Adds it after the canvas of a stage.
 *
 * @param {import("./preview_stage.js").Stage} stage
 * @param {number} lengthMs
 * @param {(ms: number) => void} seek
 */
export function addMap(stage, lengthMs, seek) {
  const map = document.createElement("div");
  Object.assign(map, { className: "map", ariaHidden: "true" });
  const [canvas, marker] = [document.createElement("canvas"), document.createElement("div")];
  map.append(canvas, marker);
  stage.canvas.after(map);
  const length = Math.max(1, lengthMs);
  let [height, way, shown] = [0, 0, 0];
  const draw = () => {
    height = map.clientHeight;
    way = height - marker.offsetHeight;
    drawNotes(canvas, stage, length);
    move(shown);
  };
  new ResizeObserver(draw).observe(map);
  /** The share of a time, from the top; and the share that is at a place. */
  const turned = (share) => Math.min(1, Math.max(0, stage.options.isUp ? share : 1 - share));
  const point = ({ clientY, buttons }) => {
    if (buttons) seek(turned((clientY - map.getBoundingClientRect().top) / height) * length);
  };
  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    point(event);
  });
  map.addEventListener("pointermove", point);
  // Without a layout, and without drawing: the browser moves the layer of the marker.
  const move = (now) => {
    shown = now;
    marker.style.transform = `translateY(${turned(now / length) * way}px)`;
  };
  return { draw, move };
}

/** Each column as marks of the notes that begin in two rows of pixels: a few thousand for any number of notes. */
function drawNotes(canvas, { chart, noteColours, options }, length) {
  canvas.width = Math.max(1, Math.round(canvas.clientWidth * devicePixelRatio));
  canvas.height = Math.max(2, Math.round(canvas.clientHeight * devicePixelRatio));
  const context = canvas.getContext("2d");
  const rows = Math.floor(canvas.height / 2);
  const lane = canvas.width / chart.keys;
  chart.columns.forEach(({ starts }, column) => {
    const counts = new Uint16Array(rows);
    for (const start of starts) counts[Math.min(rows - 1, Math.floor((start * rows) / length))] += 1;
    context.fillStyle = noteColours[column];
    counts.forEach((count, row) => {
      if (!count) return;
      context.globalAlpha = Math.min(1, 0.4 + count / 5);
      context.fillRect(column * lane, options.isUp ? 2 * row : canvas.height - 2 * row - 2, Math.max(1, lane - 1), 2);
    });
  });
}
