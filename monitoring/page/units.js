// Numbers with the units of Grafana that the dashboards use.
"use strict";

function significant(value, decimals) {
  if (decimals !== undefined) return value.toFixed(decimals);
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return String(Number(value.toFixed(Math.min(digits, 8))));
}

function scaled(value, base, units, decimals) {
  let index = 0;
  let rest = value;
  while (Math.abs(rest) >= base && index < units.length - 1) {
    rest /= base;
    index += 1;
  }
  return significant(rest, decimals) + units[index];
}

function duration(value, decimals) {
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 0.001) return significant(value * 1e6, decimals) + " µs";
  if (size < 1) return significant(value * 1e3, decimals) + " ms";
  if (size < 120) return significant(value, decimals) + " s";
  if (size < 7200) return significant(value / 60, decimals) + " min";
  if (size < 172800) return significant(value / 3600, decimals) + " h";
  return significant(value / 86400, decimals) + " d";
}

const UNITS = {
  s: duration,
  percentunit: (value, decimals) => significant(value * 100, decimals) + "%",
  bytes: (value, decimals) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"], decimals),
  reqps: (value, decimals) => scaled(value, 1000, ["", "K", "M"], decimals) + " req/s",
  ops: (value, decimals) => scaled(value, 1000, ["", "K", "M"], decimals) + " ops/s",
  none: (value, decimals) => significant(value, decimals),
};

// Text of a value: that of its mapping, or a number with its unit.
function format(value, defaults) {
  if (value === null || value === undefined) return defaults.noValue ?? "No data";
  return mapped(value, defaults)?.text ?? (UNITS[defaults.unit] ?? UNITS.none)(value, defaults.decimals);
}

function mapped(value, defaults) {
  for (const mapping of defaults.mappings ?? []) {
    if (mapping.type === "value" && mapping.options[String(value)]) return mapping.options[String(value)];
    const range = mapping.options;
    if (mapping.type === "range" && value >= (range.from ?? -Infinity) && value <= (range.to ?? Infinity)) return range.result;
  }
  return undefined;
}

const COLORS = {
  green: "#73bf69", yellow: "#fade2a", orange: "#ff9830", red: "#f2495c", blue: "#5794f2", text: "#ccccdc",
  transparent: "transparent",
};
const PALETTE = [
  "#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a",
  "#447ebc", "#c15c17", "#890f02", "#0a437c", "#6d1f62", "#584477",
];

// Color of a value: that of its mapping, or of the last threshold that it reaches.
function color(value, defaults) {
  if (value === null || value === undefined) return COLORS.text;
  const mapping = mapped(value, defaults);
  if (mapping?.color) return COLORS[mapping.color];
  let found = "text";
  for (const step of defaults.thresholds?.steps ?? []) {
    if (step.value === null || step.value === undefined || value >= step.value) found = step.color;
  }
  return COLORS[found] ?? found;
}
