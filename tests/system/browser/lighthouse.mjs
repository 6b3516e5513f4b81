// Lighthouse, as a phone on a slow network: the median of five runs of each page.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { aSet, launch, load, site } from "./support.mjs";

const RUNS = 5;
const CATEGORIES = ["performance", "accessibility", "best-practices", "seo"];
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

const { default: lighthouse } = await import(pathToFileURL(load.resolve("lighthouse")));
const { chart } = await aSet();
const port = 9500 + (process.pid % 400);
let browser;
before(async () => (browser = await launch({ args: [`--remote-debugging-port=${port}`, "--no-sandbox"] })));
after(() => browser.close());

async function measure(path) {
  const { lhr } = await lighthouse(`${site.base}${path}`, { port, onlyCategories: CATEGORIES });
  const failed = Object.values(lhr.audits).filter(({ score }) => score === 0).map(({ id }) => id);
  return {
    ...Object.fromEntries(CATEGORIES.map((name) => [name, lhr.categories[name].score * 100])),
    largestContentfulPaintMs: lhr.audits["largest-contentful-paint"].numericValue,
    layoutShift: lhr.audits["cumulative-layout-shift"].numericValue,
    blockingMs: lhr.audits["total-blocking-time"].numericValue,
    failed: failed.join(" "),
  };
}

for (const path of ["/", chart, "/docs", "/identify"]) {
  test(`Lighthouse is within the budget for ${path}`, async () => {
    const runs = [];
    for (let run = 0; run < RUNS; run += 1) runs.push(await measure(path));
    console.log(runs);
    const of = (name) => median(runs.map((run) => run[name]));
    assert.ok(of("performance") >= 95);
    assert.equal(of("accessibility"), 100);
    assert.equal(of("best-practices"), 100);
    assert.ok(of("seo") >= 95);
    assert.equal(of("layoutShift"), 0);
    if (path !== "/") return;
    assert.ok(of("largestContentfulPaintMs") <= 1200);
    assert.ok(of("blockingMs") <= 50);
  });
}
