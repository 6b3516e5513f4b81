// What a visit costs. The tests of this file run one after another, and no others beside them.

import assert from "node:assert/strict";

import { pageTest, recorded, site, until } from "./support.mjs";

const FIRST_VISIT = { requests: 3, bytes: 40_000 };
/** The page itself, unless it is still fresh: assets never change. */
const SECOND_VISIT = { requests: 1 };
const FILTER_CHANGE_MS = 200;

for (const path of ["/", "/?q=Harbour&keys=4", "/?view=table&perPage=60"]) {
  pageTest(`a first and a second visit of ${path}`, {}, async (page) => {
    const first = await recorded(page);
    await page.goto(path, { waitUntil: "networkidle" });
    console.log(`${path}: ${first.requests.length} requests, ${first.bytes} bytes`);
    assert.ok(first.requests.length <= FIRST_VISIT.requests, first.requests.join("\n"));
    assert.ok(first.bytes <= FIRST_VISIT.bytes, `${first.bytes} bytes`);
    const again = await page.context().newPage();
    const second = await recorded(again);
    await again.goto(path, { waitUntil: "networkidle" });
    assert.ok(second.requests.length <= SECOND_VISIT.requests, second.requests.join("\n"));
  });
}

pageTest("a changed filter shows its list soon", {}, async (page) => {
  const times = [];
  for (const path of ["/", "/?view=table"]) {
    for (const name of ["4K", "5K", "6K", "7K"]) {
      await page.goto(path);
      times.push(await timeOfChange(page, page.getByRole("checkbox", { name })));
      // The next visit would begin with these keys.
      await page.evaluate(() => localStorage.clear());
    }
  }
  const time = median(times);
  console.log(`new lists after ${times.map(Math.round).join(", ")} ms`);
  assert.ok(time <= FILTER_CHANGE_MS, `${time} ms`);
});

/** The milliseconds from the click on the first filter until its list is shown. */
async function timeOfChange(page, filter) {
  await page.evaluate(() => {
    const start = { time: 0 };
    document.addEventListener("click", () => (start.time ||= performance.now()), { capture: true });
    new MutationObserver(() => {
      if (!document.querySelector("#filter-state a")) return;
      requestAnimationFrame(() => (globalThis.changeTime ??= performance.now() - start.time));
    }).observe(document.body, { childList: true, subtree: true });
  });
  await filter.click();
  await until(() => page.evaluate(() => globalThis.changeTime > 0), "a new list");
  return page.evaluate(() => globalThis.changeTime);
}

function median(times) {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
}

pageTest("the modules of the preview have at most 9 KB as gzip", {}, async (page) => {
  const names = /\/preview(_notes|_stage)?\./;
  const bytes = await bytesOfModules(page, `/charts/${site.longChart}`, (address) => names.test(address));
  console.log(`preview: ${bytes} bytes`);
  assert.ok(bytes <= 9 * 1024, `${bytes} bytes`);
});

/** The bytes as gzip of the modules that a page loads, of those that are selected. */
async function bytesOfModules(page, path, isSelected) {
  const traffic = await recorded(page);
  await page.goto(path, { waitUntil: "networkidle" });
  const modules = traffic.requests.filter((address) => /\.js$/.test(address) && isSelected(address));
  assert.ok(modules.length > 2, traffic.requests.join("\n"));
  const responses = await Promise.all(modules.map((address) => page.request.get(address)));
  assert.ok(responses.every((response) => response.headers()["content-encoding"] === "gzip"));
  return responses.reduce((sum, response) => sum + Number(response.headers()["content-length"]), 0);
}

pageTest("the modules of the identification have at most 38 KB as gzip", {}, async (page) => {
  const bytes = await bytesOfModules(page, "/identify", (address) => !/\/page\./.test(address));
  console.log(`identification: ${bytes} bytes`);
  assert.ok(bytes <= 38 * 1024, `${bytes} bytes`);
});

pageTest("a long chart does not block the page", {}, async (page) => {
  await page.addInitScript(() => {
    globalThis.longest = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) globalThis.longest = Math.max(longest, duration);
    }).observe({ type: "longtask", buffered: true });
  });
  await page.goto(`/charts/${site.longChart}`);
  await page.locator("#preview[data-verified=true]").waitFor();
  const longest = await page.evaluate(() => globalThis.longest);
  console.log(`longest task ${longest.toFixed(0)} ms`);
  assert.ok(longest < 500, `${longest} ms`);
});

/** The time of a frame is that of its callback, with the processor slowed down four times. */
pageTest("frames of a long chart take at most 4 ms", {}, async (page) => {
  await page.goto(`/charts/${site.longChart}#t=60`);
  await page.locator("#preview[data-verified=true]").waitFor();
  await page.locator(".map").waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  await page.evaluate(() => {
    const request = requestAnimationFrame;
    globalThis.frames = [];
    globalThis.requestAnimationFrame = (callback) =>
      request((timestamp) => {
        const start = performance.now();
        callback(timestamp);
        frames.push(performance.now() - start);
      });
  });
  await page.getByRole("button", { name: "Play" }).click();
  await until(() => page.evaluate(() => frames.length > 200), "200 frames", 60_000);
  const time = median(await page.evaluate(() => globalThis.frames));
  console.log(`median frame ${time.toFixed(2)} ms`);
  assert.ok(time <= 4, `${time} ms`);
});
