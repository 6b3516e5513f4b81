// "Which chart is this?": hashes chart files in the browser and looks the hashes up. No file leaves the
// machine.

const MAX_FILES = 2_000;
/** The maximum of a batch lookup, and of one with variants. */
const MAX_HASHES = 1_000;
const MAX_WITH_VARIANTS = 100;
/** How many conversions of a chart are named. */
const MAX_NAMED = 3;
/** From this number of charts on, the hash filter is downloaded, and only charts that it may contain are looked up. */
const MIN_FILTERED = 100;
const MAX_DEPTH = 8;

/**
 * Identifies files or folders. One file that the index knows opens the page of its chart; several are listed.
 *
 * @param {HTMLElement} section #which-chart, with the addresses of chart_files.js and hash_filter.js in its
 * data @param {(File | FileSystemEntry)[]} items what was chosen or dropped
 */
export async function identify(section, items) {
  const run = {};
  // A new choice ends the run before it.
  section.run = run;
  const output = section.querySelector("#which-chart-result");
  section.querySelector("ul")?.remove();
  const say = (...content) => section.run === run && output.replaceChildren(...content);
  say("Reading files …");
  const [module, files] = await Promise.all([import(section.dataset.noteHashModule), filesOf(items)]);
  const charts = files.filter((file) => /\.(osu|qua)$/i.test(file.name));
  const others = files.length - charts.length;
  if (charts.length === 0) return say("No .osu or .qua file.");
  if (charts.length === 1 && others === 0) return identifyOne(module, charts[0], say);
  const list = document.createElement("ul");
  output.after(list);
  const loadFilter = () => hashFilter(section.dataset.hashFilterModule);
  return identifyAll(module, charts, others, say, list, loadFilter);
}

async function identifyOne(module, file, say) {
  const result = await hashFile(module, file);
  if (result.hash) {
    try {
      const variant = result.variant ? `&variant=${result.variant}` : "";
      const path = `/api/charts/${result.hash}?include=variants${variant}`;
      Object.assign(result, known(await lookUp(path, {}, say)));
    } catch (error) {
      result.cannotTell = error.message;
    }
  }
  // Without a result to show, since a new choice has replaced this one.
  if (say(...describe(file, result)) === false) return;
  if (result.title !== undefined) location.assign(`/charts/${result.hash}`);
}

async function identifyAll(module, charts, others, say, list, loadFilter) {
  const results = [];
  for (const [index, file] of charts.entries()) {
    if (say(`Reading ${index + 1} of ${counted(charts.length, "file")} …`) === false) return;
    results.push(await hashFile(module, file));
  }
  if ((await lookUpAll(results, say, loadFilter)) === false) return;
  for (const [index, file] of charts.entries()) {
    const item = document.createElement("li");
    item.append(...describe(file, results[index]));
    list.append(item);
  }
  const untold = results.filter((result) => result.cannotTell).length;
  const found = results.filter((result) => result.title !== undefined).length;
  const parts = [`${found} in the index`, `${results.length - found - untold} not in the index`];
  if (untold) parts.push(`${untold} cannot be told`);
  if (others) parts.push(`${counted(others, "other file")} ignored`);
  say(`${counted(charts.length, "file")}: ${parts.join(", ")}.`);
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** The hash of a file, or why there is none. */
async function hashFile({ hashChartFile, MAX_FILE_BYTES }, file) {
  try {
    if (file.size > MAX_FILE_BYTES) return { cannotTell: `larger than ${MAX_FILE_BYTES} bytes` };
    return hashChartFile(file.name, new Uint8Array(await file.arrayBuffer()));
  } catch (error) {
    return { cannotTell: error.name === "NotReadableError" ? "the file cannot be read" : error.message };
  }
}

/** Adds the titles of the charts that the index knows. False if a new choice has replaced this one. */
async function lookUpAll(results, say, loadFilter) {
  let asked = results.filter(({ hash }) => hash);
  if (asked.length >= MIN_FILTERED) {
    if (say("Reading the list of charts …") === false) return false;
    const filter = await loadFilter();
    asked = asked.filter(({ hash }) => !filter || filter.mayContain(hash));
  }
  for (let start = 0; start < asked.length; start += MAX_HASHES) {
    if (say("Looking up …") === false) return false;
    const batch = asked.slice(start, start + MAX_HASHES);
    await lookUpBatch("/api/charts/lookup", batch, { hashes: batch.map(({ hash }) => hash) }, say);
  }
  const unknown = results.filter(({ title, cannotTell, variant }) => variant && title === undefined && !cannotTell);
  for (let start = 0; start < unknown.length; start += MAX_WITH_VARIANTS) {
    if (say("Looking for conversions …") === false) return false;
    const batch = unknown.slice(start, start + MAX_WITH_VARIANTS);
    const charts = batch.map(({ hash, variant }) => ({ hash, variant }));
    await lookUpBatch("/api/charts/lookup?include=variants", batch, { charts }, say);
  }
  return true;
}

async function lookUpBatch(path, results, charts, say) {
  const body = JSON.stringify(charts);
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body };
  try {
    const { items } = await lookUp(path, request, say);
    for (const [index, item] of items.entries()) Object.assign(results[index], known(item));
  } catch (error) {
    for (const result of results) result.cannotTell = error.message;
  }
}

/** The hash filter of the index, which the browser caches. Without it, all charts are looked up. */
async function hashFilter(module) {
  try {
    const [{ HashFilter }, response] = await Promise.all([import(module), fetch("/api/charts/filter")]);
    return response.ok ? new HashFilter(await response.arrayBuffer()) : undefined;
  } catch {
    return undefined;
  }
}

/** Asks the index, and waits where it limits requests. */
async function lookUp(path, request, say) {
  for (;;) {
    const response = await fetch(path, request).catch(() => {
      throw new Error("the index cannot be reached; try again later");
    });
    if (response.ok) return response.json();
    if (response.status !== 429) throw new Error("the index is unavailable; try again later");
    await wait(Number(response.headers.get("Retry-After")) || 1, say);
  }
}

/** What is shown of the body of a chart lookup. */
function known({ status, chart, variants }) {
  return status === "known" ? { title: `${chart.artist} - ${chart.title} [${chart.difficulty}]` } : { variants };
}

/** Counts down the seconds after which the index allows the next request. */
async function wait(seconds, say) {
  for (let left = seconds; left > 0; left -= 1) {
    say(`The index limits look-ups: continues in ${counted(left, "second")} …`);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

/**
 * `song.osu: title`, with the title as a link, or `song.osu: not in the index`, with links to charts of which it
 * may be a conversion, or why it cannot be told.
 */
function describe(file, { hash, title, cannotTell, variants = [] }) {
  const isolated = (text) => Object.assign(document.createElement("bdi"), { textContent: text });
  if (cannotTell) return [isolated(file.name), `: cannot tell (${cannotTell})`];
  const link = (hash, title) => {
    const link = Object.assign(document.createElement("a"), { href: `/charts/${hash}` });
    link.append(isolated(title));
    return link;
  };
  if (title !== undefined) return [isolated(file.name), ": ", link(hash, title)];
  const named = variants.slice(0, MAX_NAMED).flatMap(({ hash, title, difficulty }, index) => [
    index ? ", " : ", but the same rows are in ",
    link(hash, `${title} [${difficulty}]`),
  ]);
  return [isolated(file.name), ": not in the index", ...named];
}

/** The files, and those in folders. */
async function filesOf(items) {
  const files = [];
  for (const item of items) await collect(item, files, MAX_DEPTH);
  return files;
}

async function collect(item, files, depth) {
  if (files.length >= MAX_FILES) return;
  if (item instanceof File) {
    files.push(item);
  } else if (item.isFile) {
    files.push(await new Promise((resolve, reject) => item.file(resolve, reject)));
  } else if (item.isDirectory && depth > 0) {
    for (const entry of await entriesOf(item)) await collect(entry, files, depth - 1);
  }
}

/** The entries of a folder, which a browser reads in portions of a hundred. */
async function entriesOf(folder) {
  const reader = folder.createReader();
  const entries = [];
  for (;;) {
    const portion = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (portion.length === 0) return entries;
    entries.push(...portion);
  }
}
