// The page of someone who exceeded the rate limit, and its recovery. `limitedPages` allows three pages in a
// minute.

import assert from "node:assert/strict";

import { pageTest, site, until } from "./support.mjs";

const options = { base: site.limitedPages, expected: [/status of 429/] };

pageTest("the limit is explained, and the page recovers by itself", options, async (page) => {
  // The set-up has used up the limit (site.rs), unless that was a minute ago.
  let response = await page.goto("/about");
  // Other addresses each time: the browser caches pages.
  for (let visit = 0; visit < 3 && response.ok(); visit += 1) response = await page.goto(`/about?visit=${visit}`);
  assert.equal(response.status(), 429);
  assert.match(response.headers()["content-type"], /^text\/html/);
  const seconds = Number(response.headers()["retry-after"]);
  assert.ok(seconds >= 1 && seconds <= 60);
  const countdown = async () => Number(await page.locator("#retry-seconds").textContent());
  assert.ok((await countdown()) <= seconds);
  await until(async () => (await countdown()) < seconds, "a countdown");
  await until(async () => (await page.title()).startsWith("About"), "the page itself", (seconds + 10) * 1000);
});
