// What was found at `/identify`: a table by folders, and a file with everything.

import { all, element, find } from "./page.js";

/** The table shows so many charts. The file with all of them has no limit. */
const MAX_ROWS = 2_000;
/** How many conversions, copies and sources of a chart are named. */
const MAX_NAMED = 3;

export const section = find("#identify");
const [table, choice, select] = [find("table", section), find(".only", section), find(".only select", section)];

export const count = (number) => number.toLocaleString("en");
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

// --- What is known of a chart ---

const [ratingStops, densityStops] = [section.dataset.ratingStops, section.dataset.densityStops].map((stops) => stops.trim().split(" ").map(Number));
const colour = (stops, value) => stops.slice(1).filter((stop) => stop <= value).length;

/** The difficulty of a chart as all pages show it (level.rs). */
export function level({ rating, densityPeak }) {
  const [index, meaning, number] = rating
    ? [colour(ratingStops, Math.round(100 * rating.value)), "difficulty", rating.value.toFixed(2)]
    : [colour(densityStops, densityPeak), "peak", `${densityPeak.toFixed(0)}/s`];
  return element("b", { className: `level l${index}` }, element("span", { className: "vh", textContent: `${meaning} ` }), number);
}

export const isolated = (text) => element("bdi", {}, text);

function link({ hash, artist, title, difficulty }) {
  const name = `${artist ? `${artist} – ` : ""}${title || "Untitled"} [${difficulty}]`;
  return element("a", { href: `/charts/${hash}` }, isolated(name));
}

/** The sources that the site knows by a name. */
const named = (sources = []) => sources.filter(({ kind }) => section.dataset[kind]);
const sourceName = ({ kind, ref }) => `${section.dataset[kind]} ${ref}`;

/** Nodes with commas between them, and how many others there are. */
function listed(items, toNode, total = items.length) {
  const nodes = items.slice(0, MAX_NAMED).flatMap((item, index) => (index ? [", ", toNode(item)] : [toNode(item)]));
  return total > MAX_NAMED ? [...nodes, ` and ${count(total - MAX_NAMED)} more`] : nodes;
}

// --- Copies among the files ---

/** The charts by their notes, and by what conversions keep. */
let copies;

function copiesAmong(results) {
  const groups = new Map();
  for (const result of results) {
    for (const key of [result.hash, result.variant].filter(Boolean)) {
      if (groups.has(key)) groups.get(key).push(result);
      else groups.set(key, [result]);
    }
  }
  return groups;
}

/** Some other files with the notes of a chart, or with its rows at other times, and the number of all. */
function copiesOf(result) {
  const same = copies.get(result.hash) ?? [];
  const converted = copies.get(result.variant) ?? same;
  const some = (group, isOther, total) => ({ total, named: total > 0 ? firstOf(group, isOther) : [] });
  return {
    same: some(same, (other) => other !== result, same.length - 1),
    converted: some(converted, ({ hash }) => hash !== result.hash, converted.length - same.length),
  };
}

function firstOf(group, isOther) {
  const named = [];
  for (const result of group) {
    if (named.length === MAX_NAMED) break;
    if (isOther(result)) named.push(result);
  }
  return named;
}

const isCopied = ({ hash, variant }) => copies.get(hash)?.length > 1 || copies.get(variant)?.length > 1;

// --- The table ---

/** What the table may be limited to. */
const KINDS = {
  "everything": () => true,
  "in the index": ({ chart }) => chart,
  "not in the index": ({ chart, reason }) => !chart && !reason,
  "more than once, also at other rates": isCopied,
  "cannot be told": ({ reason }) => reason,
};

/** Shows the results, and says how many there are of each kind. */
export function show(results) {
  copies = copiesAmong(results);
  const numbers = Object.fromEntries(Object.entries(KINDS).map(([kind, is]) => [kind, results.filter(is).length]));
  const chosen = select.value || "everything";
  const options = Object.keys(KINDS).filter((kind) => numbers[kind] > 0);
  const option = (value) => element("option", { value, textContent: `${value} (${count(numbers[value])})`, selected: value === chosen });
  select.replaceChildren(...options.map(option));
  select.onchange = () => fill(results.filter(KINDS[select.value]));
  select.onchange();
  const save = find(".save", choice);
  save.onclick = () => {
    const href = URL.createObjectURL(new Blob([csv(results)], { type: "text/csv" }));
    element("a", { href, download: "charts.csv" }).click();
    URL.revokeObjectURL(href);
  };
  table.hidden = choice.hidden = results.length === 0;
  const told = ["in the index", "not in the index", "cannot be told"].filter((kind, index) => index < 2 || numbers[kind] > 0);
  return `${counted(results.length, "chart")}: ${told.map((kind) => `${count(numbers[kind])} ${kind}`).join(", ")}.`;
}

export function hide() {
  table.hidden = choice.hidden = true;
}

/** Shows the first of these charts, by their folders. */
function fill(results) {
  const groups = new Map();
  for (const result of results.slice(0, MAX_ROWS)) {
    const folder = folderOf(result);
    if (!groups.has(folder)) groups.set(folder, []);
    groups.get(folder).push(row(result));
  }
  for (const body of all("tbody", table)) body.remove();
  table.append(...[...groups].map(([folder, rows]) => element("tbody", {}, ...heading(folder), ...rows)));
  find(".cut", choice).textContent = results.length > MAX_ROWS ? `The first ${count(MAX_ROWS)} are shown.` : "";
}

/** The path of the folder of a file, which is mostly that of a set; empty for a file that was chosen itself. */
export const folderOf = ({ file }) => file.slice(0, Math.max(file.lastIndexOf("/"), 0));

const heading = (folder) =>
  folder ? [element("tr", {}, element("th", { scope: "rowgroup", colSpan: 6 }, isolated(folder)))] : [];

/** The difficulty in a file that has several. */
const nameIn = ({ file, difficulty = "" }) => (/\.(?:sm|ssc)$/i.test(file) ? difficulty : "");

function row(result) {
  const { file, hash = "", keys, chart, reason } = result;
  const title = element("th", { scope: "row" }, isolated(file.slice(folderOf(result).length).replace("/", "")));
  if (nameIn(result)) title.append(" ", element("span", { className: "by" }, isolated(nameIn(result))));
  const link = (source) => element("a", { href: source.url, rel: "external" }, sourceName(source));
  const sources = listed(named(result.sources), link);
  const code = hash && element("code", { title: hash }, hash.slice(0, 8));
  const cells = [chart ? level(chart) : "", reason ? [`Cannot tell: ${reason}`] : found(result), sources, keys ? `${keys}K` : "", code];
  const [first, ...others] = cells.map((content) => element("td", {}, ...[content].flat()));
  return element("tr", {}, title, first, ...others);
}

/** What a chart is in the index, and among the files. */
function found(result) {
  const { hash, chart, variants = [], variantsTotal } = result;
  const nodes = chart ? [link({ ...chart, hash })] : ["Not in the index"];
  if (!chart && variants.length > 0) nodes.push(", but the same rows are in ", ...listed(variants, link, variantsTotal));
  const { same, converted } = copiesOf(result);
  const name = ({ file }) => isolated(file);
  for (const [text, { named, total }] of [["The same notes: ", same], ["The same rows at another rate, or converted: ", converted]]) {
    if (total > 0) nodes.push(element("p", { className: "by" }, text, ...listed(named, name, total)));
  }
  return nodes;
}

// --- The file ---

const COLUMNS = ["file", "chart", "result", "artist", "title", "difficulty", "keys", "hash", "rating", "sources"];

/** The values of a result, by column. */
function valuesOf(result) {
  const { file, hash = "", keys = "", chart, variants = [], reason } = result;
  const { artist = "", title = "", difficulty = "", rating } = chart ?? {};
  const text = reason ? `cannot tell: ${reason}` : chart ? "in the index" : "not in the index";
  const conversion = !chart && variants.length > 0 ? ", but a conversion of it is" : "";
  const sources = named(result.sources).map(sourceName).join(", ");
  return [file, nameIn(result), text + conversion, artist, title, difficulty, keys, hash, rating?.value ?? "", sources];
}

/** RFC 4180. A spreadsheet would run what begins like a formula. */
function csv(results) {
  const quoted = (value) => `"${String(value).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;
  return [COLUMNS, ...results.map(valuesOf)].map((row) => `${row.map(quoted).join(",")}\r\n`).join("");
}
