// "Which chart is this?": hashes chart files in the browser and looks the hashes up. No file leaves the machine.

const MAX_FILES = 2_000;
const MAX_DEPTH = 8;

/**
 * Identifies files or folders. One file that the index knows opens the page of its chart; several are listed.
 *
 * @param {HTMLElement} section #which-chart, with the address of note_hash.js in data-note-hash-module
 * @param {(File | FileSystemEntry)[]} items what was chosen or dropped
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
  return identifyAll(module, charts, others, say, list);
}

async function identifyOne(module, file, say) {
  const result = await identifyFile(module, file, say);
  // Without a result to show, since a new choice has replaced this one.
  if (say(...describe(file, result)) === false) return;
  if (result.title !== undefined) location.assign(`/charts/${result.hash}`);
}

async function identifyAll(module, charts, others, say, list) {
  const counts = { known: 0, unknown: 0, untold: 0 };
  for (const [index, file] of charts.entries()) {
    if (say(`${index + 1} of ${counted(charts.length, "file")} …`) === false) return;
    const result = await identifyFile(module, file, say);
    counts[result.title !== undefined ? "known" : result.hash ? "unknown" : "untold"] += 1;
    const item = document.createElement("li");
    item.append(...describe(file, result));
    list.append(item);
  }
  const { known, unknown, untold } = counts;
  const parts = [`${known} in the index`, `${unknown} not in the index`];
  if (untold) parts.push(`${untold} cannot be told`);
  if (others) parts.push(`${counted(others, "other file")} ignored`);
  say(`${counted(charts.length, "file")}: ${parts.join(", ")}.`);
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** The hash of a file, and the title of its chart if the index knows it; or why there is none. */
async function identifyFile({ hashChartFile, MAX_FILE_BYTES }, file, say) {
  try {
    if (file.size > MAX_FILE_BYTES) return { cannotTell: `larger than ${MAX_FILE_BYTES} bytes` };
    const outcome = hashChartFile(file.name, new Uint8Array(await file.arrayBuffer()));
    return outcome.hash ? { ...outcome, ...(await lookUp(outcome.hash, say)) } : outcome;
  } catch (error) {
    return { cannotTell: error.name === "NotReadableError" ? "the file cannot be read" : error.message };
  }
}

/** Asks the index, and waits where it limits requests. */
async function lookUp(hash, say) {
  for (;;) {
    const response = await fetch(`/api/charts/${hash}`).catch(() => {
      throw new Error("the index cannot be reached; try again later");
    });
    if (response.ok) {
      const { status, chart } = await response.json();
      return status === "known" ? { title: `${chart.artist} - ${chart.title} [${chart.difficulty}]` } : {};
    }
    if (response.status !== 429) throw new Error("the index is unavailable; try again later");
    await wait(Number(response.headers.get("Retry-After")) || 1, say);
  }
}

/** Counts down the seconds after which the index allows the next request. */
async function wait(seconds, say) {
  for (let left = seconds; left > 0; left -= 1) {
    say(`The index limits look-ups: continues in ${counted(left, "second")} …`);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

/** `song.osu: title`, with the title as a link, or `song.osu: not in the index`, or why it cannot be told. */
function describe(file, { hash, title, cannotTell }) {
  const isolated = (text) => Object.assign(document.createElement("bdi"), { textContent: text });
  if (title === undefined) return [isolated(file.name), hash ? ": not in the index" : `: cannot tell (${cannotTell})`];
  const link = Object.assign(document.createElement("a"), { href: `/charts/${hash}` });
  link.append(isolated(title));
  return [isolated(file.name), ": ", link];
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
