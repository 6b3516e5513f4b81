// A shelf of more charts than the server takes in an address. Its pages are shelves of 100.

const PAGE = 100;
/** More would take a browser long, and page.js adds no more. */
const MAX_CHARTS = 1_000;
const HASH_BYTES = 32;

/**
 * Shows the page of the shelf that the fragment of the address names, such as `#charts=…&page=2`.
 *
 * @param {HTMLElement} shelf #shelf
 * @param {(hashes: string[]) => string} pathOf
 * @returns {Promise<string | undefined>} what is wrong
 */
export async function showLongShelf(shelf, pathOf) {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const hashes = decode(fragment.get("charts"));
  if (!hashes) return "This shelf cannot be read: a part of its address may be missing.";
  if (hashes.length > MAX_CHARTS) return `This shelf has more than ${MAX_CHARTS.toLocaleString("en")} charts, which is the most that a shelf has.`;
  const last = Math.max(1, Math.ceil(hashes.length / PAGE));
  const page = Math.min(Math.max(1, Number.parseInt(fragment.get("page"), 10) || 1), last);
  const first = (page - 1) * PAGE;
  const asked = location.hash;
  const found = await load(pathOf(hashes.slice(first, first + PAGE)));
  if (location.hash !== asked) return;
  if (!found) return "The charts could not be loaded.";
  const charts = `${hashes.length.toLocaleString("en")} chart${hashes.length === 1 ? "" : "s"}`;
  const shown = `${first + 1}–${Math.min(first + PAGE, hashes.length)} of ${charts}`;
  shelf.dataset.hashes = hashes.join(" ");
  shelf.querySelector(".head p").textContent = hashes.length > PAGE ? shown : charts;
  const note = document.createElement("p");
  note.className = "note";
  const missing = found.querySelector(":scope > .note")?.firstChild.data ?? "";
  note.textContent = `The address of this shelf is read in the browser, not by the server: it has neither a text nor a feed. ${missing.replace("of this shelf", "of this page")}`;
  const parts = [...found.querySelectorAll(":scope > .scroll")];
  shelf.replaceChildren(shelf.querySelector(".head"), note, ...parts, pagesOf(fragment, page, last));
}

/** The hashes as the server encodes them (shelf.rs), each once, up to one too many; null if they are incomplete. */
function decode(charts) {
  try {
    const most = (Math.ceil((MAX_CHARTS + 1) / 3) * 3 * HASH_BYTES * 4) / 3;
    const bytes = atob(charts.slice(0, most).replaceAll("-", "+").replaceAll("_", "/"));
    if (bytes.length % HASH_BYTES) return null;
    const digits = Array.from(bytes, (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("");
    return [...new Set(digits.match(/.{64}/g) ?? [])];
  } catch {
    return null;
  }
}

/** The part of the page of a shelf; null if it cannot be loaded. */
async function load(path) {
  try {
    const response = await fetch(path, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    return response.ok ? page.querySelector("#shelf") : null;
  } catch {
    return null;
  }
}

function pagesOf(fragment, page, last) {
  const nav = document.createElement("nav");
  nav.className = "pages";
  nav.ariaLabel = "Pages";
  for (let number = 1; number <= last && last > 1; number += 1) {
    fragment.set("page", number);
    const link = document.createElement("a");
    Object.assign(link, { href: `#${fragment}`, textContent: number, ariaLabel: `Page ${number}` });
    if (number === page) link.ariaCurrent = "page";
    nav.append(link);
  }
  return nav;
}
