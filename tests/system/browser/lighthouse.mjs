// Lighthouse, as a phone on a slow network: the median of five runs (one in the short form).

import assert from "node:assert/strict";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { isLong, launch, load, site } from "./support.mjs";

const RUNS = isLong ? 5 : 1;
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

test("Lighthouse is within the budget", async () => {
  const { default: lighthouse } = await import(pathToFileURL(load.resolve("lighthouse")));
  const port = 9500 + (process.pid % 400);
  const browser = await launch({ args: [`--remote-debugging-port=${port}`, "--no-sandbox"] });
  const runs = [];
  for (let run = 0; run < RUNS; run += 1) {
    const onlyCategories = ["performance", "accessibility", "best-practices"];
    const { lhr } = await lighthouse(`${site.base}/`, { port, onlyCategories });
    runs.push({
      performance: lhr.categories.performance.score * 100,
      accessibility: lhr.categories.accessibility.score * 100,
      bestPractices: lhr.categories["best-practices"].score * 100,
      largestContentfulPaintMs: lhr.audits["largest-contentful-paint"].numericValue,
      layoutShift: lhr.audits["cumulative-layout-shift"].numericValue,
      blockingMs: lhr.audits["total-blocking-time"].numericValue,
    });
  }
  await browser.close();
  console.log(runs);
  const of = (name) => median(runs.map((run) => run[name]));
  assert.ok(of("performance") >= 95);
  assert.equal(of("accessibility"), 100);
  assert.equal(of("bestPractices"), 100);
  assert.ok(of("largestContentfulPaintMs") <= 1200);
  assert.equal(of("layoutShift"), 0);
  assert.ok(of("blockingMs") <= 50);
});
