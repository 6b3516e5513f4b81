// Sets at `/identify`: those of which some charts are missing, and what is new by charters in the folder.

import { owned } from "./library.js";
import { element, find } from "./page.js";
import { count, counted, folderOf, isolated, level, section } from "./identify_table.js";

/** A click asks for so many sets. */
const SETS = 100;
/** What is new: by so many charters, and so many of the newest sets of each, of which so many are looked at. */
const [CREATORS, SETS_OF_CREATOR, NEWEST] = [10, 10, 40];
/** How many requests are in flight. */
const PARALLEL = 4;
/** The longest name that the list accepts as a filter. */
const MAX_FILTER_CHARACTERS = 200;
/** How many charts of a set are named. */
const MAX_NAMED = 12;

/** The line of a set, with the charts of it that are missing. */
function line(set, missing) {
  const item = element("li", {}, element("a", { href: `/chartsets/${set.id}` }, isolated(set.title || "Untitled")), " – ", isolated(set.artist));
  item.append(" by ", isolated(set.creator), `: ${missing.length} of ${counted(set.charts.length, "chart")}`);
  for (const { chart, difficulty } of missing.slice(0, MAX_NAMED)) {
    const keys = `${chart.keys}K `;
    const name = isolated(difficulty.startsWith(keys) ? difficulty : keys + difficulty);
    item.append(" ", element("a", { href: `/charts/${chart.hash}` }, level(chart), " ", name));
  }
  if (missing.length > MAX_NAMED) item.append(` and ${count(missing.length - MAX_NAMED)} more`);
  if (set.downloadUrl) {
    const which = element("span", { className: "vh" }, " of ", isolated(set.title));
    item.append(" ", element("a", { href: set.downloadUrl, rel: "external" }, "Source", which));
  }
  return item;
}

/** Asks for the details of sets, and adds those of which charts are missing to a list; returns their number. */
async function addIncomplete(ids, list, { results, index, run, text }) {
  const have = new Set(results.map(({ hash }) => hash));
  const lines = [];
  let next = 0;
  const askOthers = async () => {
    while (next < ids.length) {
      const at = next++;
      await run.progress(text, at, ids.length);
      const set = await index.chartset(ids[at], { include: ["rating"], signal: run.signal }).catch(noneIfRemoved);
      const others = set.charts.filter(({ chart }) => !have.has(chart.hash));
      // Another folder of the library may have them.
      const inLibrary = await owned(others.map(({ chart }) => chart.hash)).catch(() => new Set());
      const missing = others.filter(({ chart }) => !inLibrary.has(chart.hash));
      if (missing.length > 0) lines[at] = line(set, missing);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, askOthers));
  const added = lines.filter(Boolean);
  list.append(...added);
  return added.length;
}

/** A set that was removed meanwhile has no charts. */
function noneIfRemoved(error) {
  if (error.status !== 404) throw error;
  return { charts: [] };
}

/** The sets of which there are charts in the folders: each is known by one of its charts. */
export class Incomplete {
  #samples;
  #asked = new Set();
  #found = 0;
  #list = find("#missing ul", section);

  constructor(results) {
    const samples = new Map();
    const sources = ({ sources = [] }) => sources.length;
    for (const result of results.filter(({ chart }) => chart)) {
      const key = folderOf(result) || result.file;
      // A chart of few sources is in few sets.
      if (!samples.has(key) || sources(result) < sources(samples.get(key))) samples.set(key, result);
    }
    this.#samples = [...samples.values()];
    this.total = this.#samples.length;
    this.#list.replaceChildren();
  }

  /** How many a click asks for. */
  get next() {
    return Math.min(SETS, this.#samples.length);
  }

  async ask(results, index, run) {
    const portion = this.#samples.slice(0, SETS);
    await run.progress("Looking for sets", 0, portion.length);
    const charts = await index.lookupMany(portion.map(({ hash }) => hash), { include: ["chartsets"], signal: run.signal });
    const ids = [...new Set(charts.flatMap(({ chartsets = [] }) => chartsets[0]?.id ?? []))].filter((id) => !this.#asked.has(id));
    this.#found += await addIncomplete(ids, this.#list, { results, index, run, text: "Looking at sets" });
    for (const id of ids) this.#asked.add(id);
    this.#samples.splice(0, SETS);
    const left = this.#samples.length > 0 ? ` ${counted(this.#samples.length, "folder")} left.` : "";
    return `${counted(this.#found, "set")} of ${count(this.#asked.size)} that you have lack charts.${left}`;
  }
}

/** Shows the newest sets by those who have most charts in the folders, if these lack any of their charts. */
export async function askForNew(results, index, run) {
  const numbers = new Map();
  const isFilter = (name) => name && [...name].length <= MAX_FILTER_CHARACTERS;
  for (const { creator } of results) if (isFilter(creator)) numbers.set(creator, (numbers.get(creator) ?? 0) + 1);
  const creators = [...numbers].sort(([, a], [, b]) => b - a).slice(0, CREATORS).map(([name]) => name);
  const sets = new Map();
  for (const [at, creator] of creators.entries()) {
    await run.progress("Looking for charters", at, creators.length);
    const { items } = await index.list({ creator, perPage: SETS_OF_CREATOR, include: "updated" }, { signal: run.signal });
    // The filter also finds parts of names.
    const isBy = (set) => `, ${set.creator}, `.toLowerCase().includes(`, ${creator}, `.toLowerCase());
    for (const set of items.filter(isBy)) sets.set(set.id, set);
  }
  const newest = [...sets.values()].sort((a, b) => b.updatedAtMs - a.updatedAtMs).slice(0, NEWEST);
  const list = find("#new ul", section);
  list.replaceChildren();
  const found = await addIncomplete(newest.map(({ id }) => id), list, { results, index, run, text: "Looking at sets" });
  return `${counted(found, "set")} with charts that you do not have, among the newest ${count(newest.length)} by ${creators.map((name) => `\u2068${name}\u2069`).join(", ")}.`;
}
