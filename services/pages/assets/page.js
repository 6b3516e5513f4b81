// What the pages add where scripts run. Without this module they are complete.

export const stored = {
  get(name) {
    try { return localStorage.getItem(name); } catch { return null; }
  },
  set(name, value) {
    try {
      if (value) localStorage.setItem(name, value);
      else localStorage.removeItem(name);
    } catch { /* The choice holds for this page only. */ }
  },
};
const root = document.documentElement;

// Before the first paint: the module blocks rendering.
const theme = stored.get("theme");
if (theme) root.dataset.theme = theme;
if (stored.get("library")) root.dataset.library = stored.get("library");

export const find = (selector, within = document) => within.querySelector(selector);
export const all = (selector, within = document) => [...within.querySelectorAll(selector)];

export function element(name, properties = {}, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

// The list

let loading = null;
let retryTimer = 0;
/** The fields that were edited after the list that is loading was asked for. */
const edited = new Set();
/** The address of the list that is shown. */
let shown = location.pathname + location.search;
/** Shows the list that could not be loaded without a network. */
let retryWhenOnline = null;

/** The path of the list for a form: empty fields left out, key counts and patterns joined. */
function pathOf(form) {
  const fields = new FormData(form);
  const query = new URLSearchParams();
  for (const name of ["keys", "pattern"]) {
    if (fields.has(name)) fields.set(name, fields.getAll(name).join(","));
  }
  if (fields.get("sort") === "relevance" && !fields.get("query")?.trim()) fields.delete("sort");
  // A text without filters has an address without a redirect. `7k` and `-word` are filters as well.
  if (/^(?!(?:.*\s)?(?:-|\d+k(?:\s|$)))[^"=:<>]+$/i.test(fields.get("query") ?? "")) {
    fields.set("q", fields.get("query"));
    fields.delete("query");
  }
  // So do lengths in seconds.
  for (const name of ["lengthMin", "lengthMax"]) {
    const [, minutes, seconds] = /^\s*(\d+):([0-5]?\d)\s*$/.exec(fields.get(name)) ?? [];
    if (minutes) fields.set(name, 60 * minutes + Number(seconds));
  }
  for (const [name, value] of [...fields].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (typeof value === "string" && value.trim()) query.append(name, value.trim());
  }
  const text = query.toString().replaceAll("%2C", ",");
  return text ? `/?${text}` : "/";
}

const rememberKeys = (keys) => stored.set("key-counts", keys.join(","));

const isList = (url) => url.origin === location.origin && url.pathname === "/";

/** Adds to what the history knows of this list: where the page is, or which link is followed. */
const remember = (known) => history.replaceState({ ...history.state, ...known }, "");

/** Gives the focus back to a link of the list. */
function refocus(href) {
  if (href) all("#results a[href]").find((link) => link.getAttribute("href") === href)?.focus({ preventScroll: true });
}

/**
 * Shows another list in this page: the old one stays, dimmed, until the new one is here.
 *
 * `isNext` if the list is another page, which is read from its beginning; `isEntry` if it takes the place of
 * the old one in the history; `state` of the history if it was shown before.
 */
async function show(url, { isNext = false, isEntry = false, state = null } = {}) {
  const results = find("#results");
  loading?.abort();
  edited.clear();
  const abort = (loading = new AbortController());
  clearInterval(retryTimer);
  retryWhenOnline = null;
  results.setAttribute("aria-busy", "true");
  let response, text;
  try {
    response = await fetch(url, { headers: { accept: "text/html" }, signal: abort.signal });
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") return;
    results.removeAttribute("aria-busy");
    const retry = () => show(url, { isNext, isEntry, state });
    if (!navigator.onLine) retryWhenOnline = retry;
    notice(navigator.onLine ? "The server does not respond." : "You are offline.", retry);
    return;
  }
  if (abort !== loading) return;
  results.removeAttribute("aria-busy");
  if (response.status === 429 || response.status === 503) {
    const seconds = Number(response.headers.get("retry-after")) || 5;
    const reason = response.status === 429 ? "Too many requests." : "The index does not respond.";
    countdown(seconds, reason, () => show(url, { isNext, isEntry, state }));
    return;
  }
  const page = new DOMParser().parseFromString(text, "text/html");
  const found = find("#results", page);
  // Another page, such as that of a chart whose hash was searched.
  if (!found || new URL(response.url).pathname !== "/") {
    location.assign(response.url);
    return;
  }
  notice(null);
  // A mistake is shown at its field, beside the old list.
  if (response.status === 400) return replaceForm(find("#filters", page));
  await markLibrary(found);
  if (abort !== loading) return;
  if (isEntry) {
    history.replaceState(history.state, "", response.url);
  } else if (!state) {
    remember({ scroll: scrollY });
    history.pushState({}, "", response.url);
  }
  shown = location.pathname + location.search;
  replace(page, found);
  if (state) {
    scrollTo(0, state.scroll ?? 0);
    refocus(state.focus);
  } else if (isNext) {
    const list = find("#list");
    list.tabIndex = -1;
    list.focus({ preventScroll: true });
    list.scrollIntoView();
  } else if (find("#results").getBoundingClientRect().top < 0) find("#results").scrollIntoView();
}

/** Links that every list has: the focus stays on them. */
const LASTING = [".sort a", ".views a", ".presets a", ".random", ".feed"];

function replace(page, found) {
  const focused = document.activeElement;
  const selector = LASTING.find((one) => focused.matches(one));
  const index = all(selector ?? "nothing").indexOf(focused);
  const status = find("#count");
  const newStatus = find("#count", found);
  // The status element stays, so that its change is announced.
  if (status && newStatus) {
    status.textContent = newStatus.textContent;
    newStatus.replaceWith(status);
  }
  find("#results").replaceChildren(...found.childNodes);
  document.title = page.title;
  replaceForm(find("#filters", page));
  for (const selector of ["link[rel=canonical]", "link[rel=alternate][type='application/json']"]) {
    const [old, replacement] = [find(selector), find(selector, page)];
    if (old && replacement) old.href = replacement.getAttribute("href");
  }
  applyView();
  addShelfButtons();
  if (focused === document.body || document.activeElement !== document.body) return;
  const next = all(selector ?? "nothing")[index] ?? find("#count") ?? find("#list");
  if (next.tabIndex < 0) next.tabIndex = -1;
  next.focus({ preventScroll: true });
}

/** Takes the values and the state of the new form. Its fields stay, with the focus and with what was edited since. */
function replaceForm(form) {
  const old = find("#filters");
  if (!form || !old) return;
  const fieldsOf = (one) => [...one.elements].filter((field) => field.matches("input[name]:not([type=hidden]), select"));
  const [fields, newFields] = [fieldsOf(old), fieldsOf(form)];
  newFields.forEach((field, index) => {
    const current = fields[index];
    if (field.type === "checkbox") {
      current.checked = edited.has(current) ? current.checked : field.checked;
      // A pattern with its share.
      current.value = field.value;
      current.nextElementSibling.textContent = field.nextElementSibling.textContent;
    } else if (!edited.has(current) && current.value.trim() !== field.value) current.value = field.value;
    for (const name of ["aria-invalid", "aria-describedby"]) {
      if (field.hasAttribute(name)) current.setAttribute(name, field.getAttribute(name));
      else current.removeAttribute(name);
    }
  });
  for (const selector of [".presets", "#filter-state", "summary", ".apply span"]) {
    const replacements = all(selector, form);
    all(selector, old).forEach((one, index) => one.replaceChildren(...(replacements[index]?.childNodes ?? [])));
  }
  const [histogram, newHistogram] = [find(".histogram", old), find(".histogram", form)];
  // The bars of the same filter stay, whatever difficulty it has.
  if (histogram && (!newHistogram || newHistogram.dataset.src !== barsAsked)) {
    barsAsked = null;
    histogram.dataset.src = newHistogram?.dataset.src ?? "";
    replaceBars(histogram, newHistogram?.parentElement);
    if (histogram.parentElement.matches(":hover, :focus-within")) loadBars(histogram);
  }
  showRange();
  const mistake = find("[aria-invalid]");
  if (mistake?.closest("#more")) find("#more").open = true;
  mistake?.focus();
}

/** The address of the bars of the filter, once they were asked for. */
let barsAsked = null;

/** Takes the bars and the caption of another histogram; without one there are none. */
function replaceBars(histogram, other) {
  for (const selector of ["small", "svg"]) {
    find(selector, histogram.parentElement).replaceChildren(...((other && find(selector, other)?.childNodes) ?? []));
  }
}

/** Asks for the bars of the filter, once for each. If that fails, those of the page stay for at least 5 s. */
async function loadBars(histogram) {
  const { src } = histogram.dataset;
  if (!src || src === barsAsked) return;
  barsAsked = src;
  try {
    const response = await fetch(src, { headers: { accept: "text/html" } });
    const text = await response.text();
    if (src !== barsAsked) return;
    if (!response.ok) throw new Error(response.status);
    replaceBars(histogram, new DOMParser().parseFromString(text, "text/html"));
    showRange();
  } catch {
    setTimeout(() => { if (src === barsAsked) barsAsked = null; }, 5_000);
  }
}

/** Shows the range of the fields of the difficulty in its histogram. */
let showRange = () => {};

/** Adds two handles to the histogram for those who point. They set the fields, which others use. */
function startRange() {
  const histogram = find(".histogram");
  if (!histogram) return;
  const svg = find("svg", histogram);
  // A bar is a quarter of a level.
  const max = svg.viewBox.baseVal.width / 4;
  const fields = [find("#ratingMin"), find("#ratingMax")];
  const handles = fields.map((field, end) => {
    const handle = element("input", { type: "range", min: 0, max, step: 0.05, tabIndex: -1, ariaHidden: "true" });
    handle.oninput = () => {
      const [low, high] = handles.map((one) => one.valueAsNumber);
      // They do not pass each other, and a range that ends with the bars has no end.
      const value = end ? Math.max(low, high) : Math.min(low, high);
      field.value = value === (end ? max : 0) ? "" : String(Number(value.toFixed(2)));
      edited.add(field);
      showRange();
    };
    return handle;
  });
  histogram.append(...handles);
  showRange = () => {
    const range = fields.map((field, end) => {
      const value = Number.parseFloat(field.value);
      return Number.isNaN(value) ? (end ? max : 0) : Math.min(Math.max(value, 0), max);
    });
    handles.forEach((handle, end) => (handle.value = range[end]));
    // Where both are at the same place, the one that can move is above.
    handles[0].style.zIndex = range[0] > max / 2 ? 1 : 0;
    const [below, above] = all("rect", svg);
    below?.setAttribute("width", 4 * range[0]);
    above?.setAttribute("x", 4 * range[1]);
  };
  for (const field of fields) field.addEventListener("input", () => showRange());
  for (const type of ["pointermove", "pointerdown", "focusin"]) histogram.parentElement.addEventListener(type, () => loadBars(histogram));
  showRange();
}

function startList() {
  const form = find("#filters");
  if (!form) return;
  let timer = 0;
  const submit = () => {
    clearTimeout(timer);
    const path = pathOf(form);
    if (path !== shown || find("[aria-invalid]")) show(path);
  };
  startRange();
  const more = find("#more");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
    if (event.submitter?.closest(".apply")) {
      more.open = false;
      find("summary", more).focus();
    }
  });
  more.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !more.open) return;
    more.open = false;
    find("summary", more).focus();
  });
  document.addEventListener("input", (event) => edited.add(event.target));
  document.addEventListener("change", (event) => {
    if (event.target.form !== form) return;
    if (event.target.name === "keys") rememberKeys(new FormData(form).getAll("keys"));
    if (event.target.matches("input[type=checkbox], select")) submit();
    else if (event.target.name !== "query") {
      clearTimeout(timer);
      timer = setTimeout(submit, 150);
    }
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const url = new URL(link.href);
    if (link.closest("#results")) remember({ focus: link.getAttribute("href") });
    if (!isList(url) || url.hash || !link.closest("#results, #filters")) return;
    event.preventDefault();
    if (link.closest("#filter-state") || !url.search) rememberKeys(url.searchParams.getAll("keys"));
    if (link.dataset.view !== undefined) {
      stored.set("view", link.dataset.view === "cards" ? "cards" : "");
      const query = new URLSearchParams(location.search);
      if (query.has("view")) return void show(url);
      applyView();
      return;
    }
    show(url, { isNext: Boolean(link.closest(".pages")) });
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.closest(".pages")) return;
    event.preventDefault();
    show(pathOf(event.target), { isNext: true });
  });
  addEventListener("popstate", (event) => {
    // A link to a part of the page, or back before another list was here: the list that is shown is the right
    // one.
    if (location.pathname + location.search === shown) {
      loading?.abort();
      clearInterval(retryTimer);
      retryWhenOnline = null;
      find("#results")?.removeAttribute("aria-busy");
      return;
    }
    if (isList(new URL(location.href))) show(location.href, { state: event.state ?? {} });
  });
  const { type } = performance.getEntriesByType("navigation")[0] ?? {};
  if (type === "back_forward") refocus(history.state?.focus);
  applyView();
  // Most people play one number of keys: the list without filters begins with theirs.
  const keys = stored.get("key-counts");
  const isKnown = /^[4-7](,[4-7])*$/.test(keys ?? "");
  if (isKnown && type === "navigate" && shown === "/" && !location.hash) show(`/?keys=${keys}`, { isEntry: true });
}

/** The remembered view, unless the address names one. */
function applyView() {
  const list = find("#list");
  const asked = new URLSearchParams(location.search).get("view");
  const view = asked ?? stored.get("view") ?? "";
  if (list) list.dataset.view = view;
  for (const link of all(".views a")) {
    if (link.dataset.view === (view || "table")) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

// Notices

/** Shows a message at the foot of the window, with a way to try again. */
function notice(text, retry) {
  find(".banner")?.remove();
  if (!text) return;
  const banner = element("div", { className: "banner" }, element("span", { role: "alert", textContent: text }), " ");
  if (retry) banner.append(element("button", { type: "button", textContent: "Try again", onclick: retry }));
  document.body.append(banner);
}

function countdown(seconds, reason, retry) {
  let left = seconds;
  // Announced once; the seconds are for the eye.
  notice(`${reason} Trying again in ${seconds} seconds.`, retry);
  const count = element("span", { ariaHidden: "true" });
  find(".banner").insertBefore(count, find(".banner button"));
  clearInterval(retryTimer);
  retryTimer = setInterval(() => {
    left -= 1;
    count.textContent = `${left} s `;
    if (left > 0) return;
    clearInterval(retryTimer);
    retry();
  }, 1000);
}

/** Counts down on the page of a 429 or a 503. */
function startRetry() {
  const note = find("#retry");
  if (!note) return;
  let left = Number(note.dataset.retryAfter);
  const timer = setInterval(() => {
    left -= 1;
    find("#retry-seconds").textContent = String(Math.max(left, 0));
    if (left > 0) return;
    clearInterval(timer);
    location.reload();
  }, 1000);
}

// Preferences

function startPreferences() {
  const place = find("#preferences");
  if (!place) return;
  const select = element("select", { id: "theme" });
  for (const [value, label] of [["", "System"], ["light", "Light"], ["dark", "Dark"]]) {
    select.append(element("option", { value, textContent: label, selected: value === (stored.get("theme") ?? "") }));
  }
  select.addEventListener("change", () => {
    stored.set("theme", select.value);
    if (select.value) root.dataset.theme = select.value;
    else delete root.dataset.theme;
  });
  const keys = element("input", { type: "checkbox", checked: stored.get("keys") !== "off" });
  keys.addEventListener("change", () => stored.set("keys", keys.checked ? "" : "off"));
  place.append(element("label", {}, "Theme ", select), element("label", {}, keys, "Keyboard shortcuts (press ? for a list)"));
}

function startCopy() {
  for (const place of all("[data-copy]")) {
    const button = element("button", { type: "button", textContent: "Copy" });
    button.setAttribute("aria-label", `Copy the ${place.dataset.name}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(find(`#${place.dataset.copy}`).textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(find(`#${place.dataset.copy}`));
        button.textContent = "Press Ctrl+C";
      }
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    place.append(button);
  }
}

// Suggestions

/** The filters of the search field, each with the usual operator. */
const FILTERS = ["artist:", "bpm=", "creator:", "keys=", "length<", "ln>=", "notes>", "nps>", "stars>", "tag:", "title:", "jack>", "chordjack>",
  "longjack>", "trill>", "jumptrill>", "stream>", "jumpstream>", "handstream>", "chordstream>"];

/** Completes the name of a filter that is being typed. */
function startSuggestions() {
  const field = find("#q");
  if (!field) return;
  const list = element("datalist", { id: "suggestions" });
  field.after(list);
  field.setAttribute("list", list.id);
  field.addEventListener("input", () => {
    const start = field.value.lastIndexOf(" ") + 1;
    const [before, word] = [field.value.slice(0, start), field.value.slice(start).toLowerCase()];
    const names = word.length < 2 ? [] : FILTERS.filter((name) => name.startsWith(word) && name !== word);
    list.replaceChildren(...names.map((name) => element("option", { value: before + name })));
  });
}

// The shelf: the charts that were chosen in this browser

const chosen = () => (stored.get("shelf") ?? "").split(" ").filter((hash) => /^[0-9a-f]{64}$/.test(hash));

/** The most charts of an address that the server reads (shelf.rs), and of one that only shelf.js does. */
const [SHORT_SHELF, LONG_SHELF] = [100, 1000];

/** The address of the page of these charts. What is after # is not sent to the server. */
function shelfPath(hashes) {
  const bytes = hashes.join("").replace(/../g, (digits) => String.fromCharCode(Number.parseInt(digits, 16)));
  const charts = btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return hashes.length ? `/shelf${hashes.length > SHORT_SHELF ? "#" : "?"}charts=${charts}` : "/shelf";
}

function showShelf() {
  const hashes = chosen();
  for (const link of all("a.shelf")) {
    link.href = shelfPath(hashes);
    link.textContent = hashes.length ? `Shelf (${hashes.length})` : "Shelf";
  }
  const isOn = new Set(hashes);
  for (const button of all("[data-shelf]")) {
    if (button.className === "put") button.ariaPressed = String(isOn.has(button.dataset.shelf));
    else button.textContent = isOn.has(button.dataset.shelf) ? "Remove from your shelf" : "Add to your shelf";
  }
  const shelf = find("#shelf");
  if (shelf) offerShelf(shelf);
}

/** Adds a button to each chart of lists and tables. */
function addShelfButtons() {
  for (const link of all(".charts > li > a[href^='/charts/'], .charts-table th > a")) {
    const row = link.closest("li, tr");
    if (find(".put", row)) continue;
    const button = element("button", { type: "button", className: "put", title: "On your shelf" });
    const names = [...all("h2 bdi", link.closest(".set") ?? link), ...all("bdi, .k", link)];
    button.ariaLabel = `On your shelf: ${names.map((name) => name.textContent).join(" ")}`;
    button.dataset.shelf = link.pathname.slice("/charts/".length);
    (row.matches("tr") ? row.lastElementChild : row).append(button);
  }
  showShelf();
}

function toggleShelf(event) {
  const control = event.target.closest?.("[data-shelf]");
  const opensLink = control?.matches("a") && (event.ctrlKey || event.metaKey || event.shiftKey);
  if (!control || opensLink) return;
  const hash = control.dataset.shelf;
  event.preventDefault();
  const hashes = chosen();
  const others = hashes.filter((other) => other !== hash);
  if (others.length === hashes.length && hashes.length >= LONG_SHELF) return notice("Your shelf has 1,000 charts: no more fit into an address.");
  stored.set("shelf", (others.length < hashes.length ? others : [...hashes, hash]).join(" "));
  showShelf();
}

/** Offers to keep the shelf of the page in this browser. */
function offerShelf(shelf) {
  const { hashes } = shelf.dataset;
  find(".keep", shelf)?.remove();
  if (!hashes || hashes === chosen().join(" ")) return;
  const textContent = chosen().length ? "Replace your shelf in this browser by this one" : "Keep as your shelf in this browser";
  const keep = element("p", { className: "keep" }, element("button", { type: "button", textContent }));
  keep.firstChild.addEventListener("click", () => {
    stored.set("shelf", hashes);
    showShelf();
  });
  find(".head", shelf).append(keep);
}

function startShelf() {
  addShelfButtons();
  addEventListener("storage", showShelf);
  document.addEventListener("click", toggleShelf);
  const shelf = find("#shelf");
  if (!shelf) return;
  const isLong = () => new URLSearchParams(location.hash.slice(1)).has("charts");
  let wasLong = false;
  const show = async (event) => {
    if (!isLong()) return wasLong && location.reload();
    wasLong = true;
    const { showLongShelf } = await import(shelf.dataset.module);
    notice(await showLongShelf(shelf, shelfPath), show);
    addShelfButtons();
    markLibrary(shelf);
    if (event?.type === "hashchange") find("#main").focus();
  };
  // Its address would lose the charts.
  find(".skip").addEventListener("click", (event) => {
    if (!isLong()) return;
    event.preventDefault();
    find("#main").focus();
  });
  addEventListener("hashchange", show);
  show();
}

// Keys

const KEYS = [["/", "Search"], ["j", "Next set"], ["k", "Previous set"], ["[", "Previous page"], ["]", "Next page"], ["?", "These keys"]];

function step(by) {
  const links = all(".set:not([hidden]) h2 a");
  if (!links.length) return;
  const current = links.findIndex((link) => link.closest(".set").contains(document.activeElement));
  links[Math.min(Math.max(current + by, 0), links.length - 1)].focus();
}

function help() {
  const open = find("#keys-help");
  if (open) return open.close();
  const list = element("dl");
  for (const [key, meaning] of KEYS) list.append(element("dt", {}, element("kbd", { textContent: key })), element("dd", { textContent: meaning }));
  const dialog = element("dialog", { id: "keys-help" }, element("h2", { id: "keys-title", textContent: "Keys" }), list,
    element("form", { method: "dialog" }, element("button", { textContent: "Close" })));
  dialog.setAttribute("aria-labelledby", "keys-title");
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function startKeys() {
  addEventListener("keydown", (event) => {
    if (stored.get("keys") === "off" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest?.("input, select, textarea, [contenteditable]") || (find("dialog[open]") && event.key !== "?")) return;
    const actions = {
      "/": () => find("#q")?.focus(),
      "?": help,
      j: () => step(1),
      k: () => step(-1),
      "[": () => find(".pages a[rel=prev]")?.click(),
      "]": () => find(".pages a[rel=next]")?.click(),
    };
    const action = Object.hasOwn(actions, event.key) && actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

// Modules of a page

async function startPreview() {
  const section = find("#preview");
  if (!section?.dataset.module) return;
  const { start } = await import(section.dataset.module);
  start(section, stored);
}

/** Loads the peek when the first strip is pointed at. */
function startPeek() {
  const module = document.body.dataset.peek;
  if (!module || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const controller = new AbortController();
  const load = async (event) => {
    if (!event.target.closest?.(".charts li, .charts-table tr")) return;
    controller.abort();
    const { start } = await import(module);
    start(event);
  };
  const options = { passive: true, signal: controller.signal };
  for (const type of ["pointermove", "pointerdown", "focusin"]) addEventListener(type, load, options);
}

/** Marks what someone has, in the browsers with a library (library.js). */
async function markLibrary(part) {
  const { library: module } = document.body.dataset;
  if (!module || !stored.get("library")) return;
  try {
    const { mark } = await import(module);
    await mark(part);
  } catch {
    delete root.dataset.library;
  }
}

function start() {
  startList();
  startRetry();
  startPreferences();
  startCopy();
  startShelf();
  startSuggestions();
  startKeys();
  startPreview();
  startPeek();
  markLibrary(document);
  addEventListener("offline", () => notice("You are offline. What is shown may be out of date."));
  addEventListener("online", () => {
    notice(null);
    retryWhenOnline?.();
  });
}

if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
else start();
