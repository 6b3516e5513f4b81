// The library: the charts in the folders that someone has read at `/identify`, and their marks in lists. It is in
// this browser only, in IndexedDB. `page.js` loads this module where there is one.

import { all, element, find, stored } from "./page.js";

const NAME = "library";
/** How many files are read from the database at a time. */
const PORTION = 5_000;

let opened;
/** Whether another page of the site has deleted the database since the last reading began. */
let isForgotten = false;

/** The database, which the first folder creates. Fails where there is none, or where the browser stores nothing. */
async function open(isCreated) {
  while (opened) {
    const database = await opened.catch(() => undefined);
    if (database) return database;
  }
  if (isForgotten) throw new Error("the library was deleted");
  opened = new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => {
      if (!isCreated) return request.transaction.abort();
      const files = request.result.createObjectStore("files", { keyPath: "path" });
      files.createIndex("hashes", "hashes", { multiEntry: true });
      request.result.createObjectStore("folders", { keyPath: "name" });
    };
    request.onsuccess = () => {
      request.result.onversionchange = () => {
        isForgotten = true;
        close();
      };
      resolve(request.result);
    };
    request.onerror = () => {
      opened = undefined;
      reject(request.error);
    };
  });
  return opened;
}

async function close() {
  const database = opened;
  opened = undefined;
  (await database)?.close();
}

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Runs a function with a store. What it writes is there once this is over. */
async function inStore(name, mode, run, isCreated = true) {
  const transaction = (await open(isCreated)).transaction(name, mode, { durability: "relaxed" });
  const over = new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = () => reject(transaction.error);
  });
  const result = await run(transaction.objectStore(name));
  if (mode === "readwrite") await over;
  return result;
}

/** Begins a reading, which may create the database. */
export const startReading = () => void (isForgotten = false);

/** The folders that were read: `name`, numbers of `files` and `charts`, `readAt`, and `handle` where there is one. */
export const folders = () => inStore("folders", "readonly", (store) => done(store.getAll()), false);

/** The files of a folder, by their paths: `size`, `time` and `charts`. */
export async function filesOf(folder) {
  const files = new Map();
  for (let from = `${folder}/`; ; ) {
    const range = IDBKeyRange.bound(from, `${folder}0`, files.size > 0, true);
    const portion = await inStore("files", "readonly", (store) => done(store.getAll(range, PORTION)));
    for (const file of portion) files.set(file.path, file);
    if (portion.length < PORTION) return files;
    from = portion.at(-1).path;
  }
}

export const putFiles = (files) =>
  inStore("files", "readwrite", (store) => files.forEach((file) => store.put(file)));

/** Completes a folder: what it has no more is removed. */
export async function putFolder(folder, removed) {
  await inStore("files", "readwrite", (store) => removed.forEach((path) => store.delete(path)));
  await inStore("folders", "readwrite", (store) => void store.put(folder));
}

/** From now on, pages mark what is in the library. */
export const startMarks = () => stored.get(NAME) ?? stored.set(NAME, "marks");

/** Deletes the library. */
export async function forget() {
  stored.set(NAME, "");
  await close();
  await done(indexedDB.deleteDatabase(NAME));
}

/** Those of these charts that are in the library. */
export async function owned(hashes) {
  const found = (hash, store) => done(store.index("hashes").getKey(hash));
  const isOwned = await inStore("files", "readonly", (store) => Promise.all(hashes.map((hash) => found(hash, store))), false);
  return new Set(hashes.filter((_, index) => isOwned[index] !== undefined));
}

// --- Marks ---

const LINKS = ":is(.charts, .charts-table tbody, .compared, .siblings) a[href^='/charts/']";
const hashOf = (link) => link.getAttribute("href").slice("/charts/".length);

/** Marks the charts in a page, or in a part of it, that are in the library, and offers to hide them. */
export async function mark(part) {
  const links = all(LINKS, part);
  const own = find("#preview[data-hash]", part)?.dataset.hash;
  const have = await owned([...new Set([...links.map(hashOf), own])].filter(Boolean));
  const add = (row, place) => {
    row.classList.add("have");
    place.append(element("span", { className: "vh", textContent: " (in your library)" }));
  };
  const rowOf = (link) => link.closest(".spectrum") ? link : (link.closest(".compared th, li, tr") ?? link);
  for (const link of links.filter((one) => have.has(hashOf(one)) && !rowOf(one).matches(".have"))) add(rowOf(link), link);
  const head = find("article > .head:has(> .level)", part);
  if (head && have.has(own)) add(head, find(".level", head));
  const place = find("#have", part);
  if (place) place.replaceChildren(...choice(part));
  const list = find("#list", part);
  if (list) list.dataset.marked = "";
}

/** Whether all charts of a set are shown and in the library. */
const isWhole = (set) =>
  all(LINKS, set).length > 0 && !find("a[href^='/chartsets/']", find(".charts", set)) && all(LINKS, set).every((link) => link.closest(".have"));

/** The check box that hides sets, and what it does on this page. */
function choice(part) {
  const sets = all(".set", part);
  const whole = sets.filter(isWhole);
  const note = element("span", { className: "by" });
  const box = element("input", { type: "checkbox", checked: stored.get(NAME) === "hide" });
  const show = () => {
    for (const set of whole) set.hidden = box.checked;
    const number = `${whole.length} of ${sets.length} sets on this page`;
    note.textContent = box.checked ? `${number} are hidden. The count includes them.` : `You have ${number}.`;
  };
  box.addEventListener("change", () => {
    stored.set(NAME, box.checked ? "hide" : "marks");
    show();
  });
  show();
  return [element("label", {}, box, "Hide what I have"), note];
}
