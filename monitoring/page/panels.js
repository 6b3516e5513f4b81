// Draws one panel each: stat, state-timeline, timeseries.

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

const seriesOf = (panel) => panel.targets.flatMap((target) => target.series);
const hasValue = (series) => series.values.some((value) => value !== null);
const clock = (at, range) =>
  new Date(at * 1000).toLocaleTimeString("en-GB", range < 600 ? {} : { hour: "2-digit", minute: "2-digit" });

function drawStat(panel, box) {
  const defaults = panel.fieldConfig.defaults;
  const solid = panel.options.colorMode.startsWith("background");
  const shown = seriesOf(panel).filter(hasValue);
  const values = shown.length > 0 ? shown : [{ name: "", values: [null] }];
  const list = element("div", "values");
  for (const series of values) {
    const value = series.values.at(-1);
    const item = element("div", "value");
    if (panel.options.textMode === "value_and_name" && series.name) item.append(element("small", "", series.name));
    const text = element("b", "", format(value, defaults));
    const width = (box.clientWidth - 24) / values.length;
    text.style.fontSize = `${Math.min(40, (width / Math.max(3, text.textContent.length)) * 1.5, (box.clientHeight - 40) * 0.6)}px`;
    if (!solid) text.style.color = color(value, defaults);
    item.append(text);
    list.append(item);
  }
  const value = values[0].values.at(-1);
  if (solid && value !== null) {
    box.classList.add("solid");
    box.style.background = color(value, defaults);
  }
  box.append(list);
}

function drawTimeline(panel, box) {
  const defaults = panel.fieldConfig.defaults;
  const rows = seriesOf(panel).filter(hasValue);
  const area = element("div", "timeline");
  box.append(area);
  const left = 130;
  const width = area.clientWidth - left;
  const height = (area.clientHeight - 22) / rows.length;
  const place = (node, x, y, w, h) =>
    Object.assign(node.style, { left: `${x}px`, top: `${y}px`, width: `${w}px`, height: `${h}px` });
  rows.forEach((series, row) => {
    const name = element("div", "name", series.name);
    place(name, 0, row * height, left - 8, height);
    name.style.lineHeight = `${height}px`;
    area.append(name);
    const count = series.values.length;
    for (let from = 0, to = 1; from < count; from = to, to += 1) {
      const tone = color(series.values[from], defaults);
      while (to < count && series.values[to] !== null && color(series.values[to], defaults) === tone) to += 1;
      if (series.values[from] === null) {
        to = from + 1;
        continue;
      }
      const segment = element("div", "segment");
      segment.title = format(series.values[from], defaults);
      segment.style.background = tone;
      place(segment, left + (from / count) * width, row * height + 2, ((to - from) / count) * width, height - 4);
      area.append(segment);
    }
  });
  for (let tick = 1; tick < 8; tick += 1) {
    const label = element("span", "tick", clock(DATA.start + ((DATA.end - DATA.start) * tick) / 8, DATA.end - DATA.start));
    label.style.left = `${left + (width * tick) / 8}px`;
    area.append(label);
  }
}

// The values of stacked series, each on top of those before it.
function stack(series) {
  const sums = new Array(series[0].values.length).fill(0);
  return series.map(({ values }) => values.map((value, index) => (value === null ? null : (sums[index] += value))));
}

function drawGraph(panel, box) {
  const { defaults } = panel.fieldConfig;
  const custom = defaults.custom ?? {};
  const all = seriesOf(panel).filter(hasValue);
  const stacked = custom.stacking?.mode === "normal";
  // A series of zeros would cover the line of the one below it.
  const drawable = stacked ? all.filter((one) => one.values.some((value) => value > 0)) : all;
  const series = drawable.length > 0 ? drawable : all;
  const logarithmic = custom.scaleDistribution?.type === "log";
  const columns = (stacked ? stack(series) : series.map((one) => one.values)).map((values) =>
    logarithmic ? values.map((value) => (value > 0 ? value : null)) : values,
  );
  const times = series[0].values.map((_, index) => DATA.start + index * DATA.step);
  const limit = (defaults.thresholds?.steps ?? []).find((step) => step.value !== null);
  const tones = all.map((_, index) => PALETTE[index % PALETTE.length]);
  const tone = (index) => tones[all.indexOf(series[index])];
  const legend = drawLegend(all, tones, defaults);
  const drawn = element("div");
  box.append(drawn, legend.node);
  const options = {
    width: box.clientWidth - 10,
    height: box.clientHeight - 32 - legend.node.offsetHeight,
    legend: { show: false },
    cursor: { sync: { key: "time" }, y: false, points: { show: false } },
    scales: {
      x: { time: true, range: [DATA.start, DATA.end] },
      y: { distr: logarithmic ? 3 : 1, range: (_, low, high) => bounds(low, high, defaults, custom, logarithmic) },
    },
    axes: [
      { ...axis(), space: 80, values: (_, ticks) => ticks.map((at) => clock(at, DATA.end - DATA.start)) },
      { ...axis(), size: 72, ...(defaults.unit === "bytes" ? { incrs: POWERS } : {}), values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : format(tick, { ...defaults, decimals: undefined }))) },
    ],
    series: [
      {},
      ...columns.map((_, index) => ({
        stroke: tone(index),
        width: 1.3,
        fill: tone(index) + (stacked ? "66" : "14"),
        points: { show: true, size: 4, fill: tone(index), filter: isolated },
      })),
    ],
    // The area of a stacked series ends at the one below it.
    bands: stacked ? columns.slice(1).map((_, index) => ({ series: [index + 2, index + 1] })) : [],
    hooks: {
      draw: limit ? [(plot) => drawLimit(plot, limit.value)] : [],
      setCursor: [(plot) => legend.update(plot.cursor.idx)],
    },
  };
  new uPlot(options, [times, ...columns], drawn);
}

// Steps of an axis in bytes.
const POWERS = Array.from({ length: 50 }, (_, exponent) => 2 ** exponent);

function axis() {
  return { stroke: "#8e8ea0", font: "11px sans-serif", grid: { stroke: "#25282d", width: 1 }, ticks: { stroke: "#25282d", width: 1 } };
}

function bounds(low, high, defaults, custom, logarithmic) {
  if (logarithmic) return [10 ** Math.floor(Math.log10(low ?? 1)), 10 ** Math.ceil(Math.log10(high ?? 10) + 1e-9)];
  const bottom = Math.min(defaults.min ?? low ?? 0, low ?? 0);
  const top = defaults.max ?? (high ?? 1) * 1.05;
  return [bottom, top > bottom ? top : bottom + 1];
}

// Indexes of points without neighbours, which no line shows.
function isolated(plot, index) {
  const values = plot.data[index];
  const has = (at) => values[at] !== null && values[at] !== undefined;
  return [...values.keys()].filter((at) => has(at) && !has(at - 1) && !has(at + 1));
}

function drawLimit(plot, value) {
  const y = plot.valToPos(value, "y", true);
  if (y < plot.bbox.top) return;
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = COLORS.red;
  ctx.setLineDash([6, 6]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}

// Names with their values: at the cursor, else the last ones.
function drawLegend(series, tones, defaults) {
  const node = element("div", "legend");
  const texts = series.map((one, index) => {
    const item = element("span");
    const mark = element("i");
    mark.style.background = tones[index];
    const text = element("em");
    item.append(mark, one.name, text);
    node.append(item);
    return text;
  });
  const update = (at) =>
    series.forEach((one, index) => {
      const value = at === null || at === undefined ? one.values.at(-1) : one.values[at];
      texts[index].textContent = value === null ? "–" : format(value, defaults);
    });
  update();
  return { node, update };
}

const DRAW = { stat: drawStat, "state-timeline": drawTimeline, timeseries: drawGraph };
