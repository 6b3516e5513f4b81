// A browser on the site of the test run, and users who operate it by mouse, by keyboard alone, or without
// scripts.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";
import net from "node:net";
import { after, before, test } from "node:test";

/** A package of tests/system/browser/package.json, which is installed outside of the checkout. */
export const load = createRequire(`${process.env.BROWSER_PACKAGES}/package.json`);

/** The addresses and the contents of the site (site.rs). */
export const site = JSON.parse(process.env.SITE);

/** Whether this is the long form. */
export const isLong = Boolean(process.env.LONG);

/** Starts Debian's Chromium. Root, as in containers, cannot use its sandbox. */
export function launch(options = {}) {
  const args = process.getuid() === 0 ? ["--no-sandbox"] : [];
  return load("playwright-core").chromium.launch({ executablePath: "/usr/bin/chromium", args, ...options });
}

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/**
 * Opens a page in a context of its own, and fails if it reports anything: a message on the console, an error,
 * or a violation of the content security policy.
 *
 * @param {object} options of the context; `expected` are patterns of messages that a test provokes
 * @param {(page: import("playwright-core").Page) => Promise<void>} run
 */
export async function withPage({ expected = [], base = site.base, ...options }, run) {
  const context = await browser.newContext({ baseURL: base, ...options });
  context.setDefaultTimeout(10_000);
  const messages = [];
  const note = (text) => expected.some((pattern) => pattern.test(text)) || messages.push(text);
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sourceFile, lineNumber }) =>
      console.error(`policy: ${violatedDirective} ${blockedURI} at ${sourceFile}:${lineNumber}`));
  });
  context.on("console", (message) => note(`${message.type()}: ${message.text()} (${message.location().url})`));
  context.on("weberror", ({ error }) => note(`error: ${error().stack}`));
  try {
    await run(await context.newPage());
    assert.deepEqual(messages, [], "the page reports nothing");
  } finally {
    await context.close();
  }
}

/** A test with one page. */
export function pageTest(name, options, run) {
  test(name, () => withPage(options, run));
}

/** A test in each of these modes, whose page is operated through a `User`. */
export function journey(name, run, { modes = ["mouse", "keyboard", "no script"], ...options } = {}) {
  for (const mode of modes) {
    const permissions = ["clipboard-read", "clipboard-write"];
    const context = { javaScriptEnabled: mode !== "no script", permissions, ...options };
    pageTest(`${name} (${mode})`, context, (page) => run(new User(page, mode), page));
  }
}

/** How someone operates a page. */
class User {
  constructor(page, mode) {
    this.page = page;
    this.mode = mode;
    this.hasScript = mode !== "no script";
  }

  /** Follows a link, presses a button, or switches a check box. */
  async activate(target) {
    if (this.mode !== "keyboard") return target.click();
    await this.moveTo(target);
    const isSwitch = await target.evaluate((node) => node.type === "checkbox" || node.type === "radio");
    return this.page.keyboard.press(isSwitch ? "Space" : "Enter");
  }

  /** Replaces the text of a field. */
  async type(target, text) {
    if (this.mode !== "keyboard") return target.fill(text);
    await this.moveTo(target);
    await this.page.keyboard.press("ControlOrMeta+A");
    return this.page.keyboard.insertText(text);
  }

  /** Presses Tab until the target has the focus, which must then be visible. */
  async moveTo(target) {
    await target.waitFor();
    const hasFocus = () => target.evaluate((node) => node === document.activeElement);
    for (let presses = 0; !(await hasFocus()); presses += 1) {
      assert.ok(presses < 400, `${target} is reached by Tab`);
      await this.page.keyboard.press("Tab");
    }
    const box = await target.evaluate((node) => {
      const visible = node.type === "checkbox" ? node.parentElement : node;
      const { width, height } = visible.getBoundingClientRect();
      return { width, height };
    });
    assert.ok(box.width > 0 && box.height > 0, `${target} is visible with the focus`);
  }
}

/** Sends commands to the servers (control.rs), and waits for their effect. */
export async function control(...commands) {
  const socket = net.connect(site.control);
  for (const command of commands) {
    socket.write(`${command}\n`);
    await once(socket, "data");
  }
  socket.end();
}

/** Polls until a condition holds, with a limit. */
export async function until(condition, what, timeoutMs = 20_000) {
  const start = performance.now();
  while (!(await condition())) {
    assert.ok(performance.now() - start < timeoutMs, `${what} within ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The JSON of an API resource. */
export async function api(path) {
  const response = await fetch(site.base + path);
  assert.equal(response.status, 200, path);
  return response.json();
}

/** The addresses of a set with several charts, and of its first chart. */
export async function aSet() {
  const { items } = await api("/api/chartsets?q=Harbour+Lights&creator=mossgrove");
  const detail = await api(`/api/chartsets/${items[0].id}`);
  return { set: `/chartsets/${items[0].id}`, chart: `/charts/${detail.charts[0].chart.hash}`, detail };
}

/** Counts the requests of a page that its cache does not answer, and their bytes on the wire. */
export async function recorded(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const traffic = { requests: [], bytes: 0 };
  const fromCache = new Set();
  const addresses = new Map();
  session.on("Network.requestWillBeSent", ({ requestId, request }) => addresses.set(requestId, request.url));
  session.on("Network.requestServedFromCache", ({ requestId }) => fromCache.add(requestId));
  session.on("Network.responseReceived", ({ requestId, response }) => {
    if (response.fromDiskCache) fromCache.add(requestId);
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (fromCache.has(requestId) || !addresses.get(requestId)?.startsWith("http")) return;
    traffic.requests.push(addresses.get(requestId));
    traffic.bytes += encodedDataLength;
  });
  return traffic;
}
