// Every page and state by axe-core (WCAG 2.2 AA and best practices), in themes and widths, and by
// html-validate.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { aSet, isLong, load, pageTest, site } from "./support.mjs";

const AXE = readFileSync(load.resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** A folder for a screenshot of each page. */
const { SCREENSHOTS } = process.env;

const { set, chart, detail } = await aSet();

/** Every page, and every state of the list that has an address. */
const PAGES = {
  "list": "/",
  "list as cards": "/?view=cards",
  "list as a table": "/?view=table",
  "filtered list": "/?q=Harbour&keys=4,7&source=alphaSet&mainBpmMin=10&densityMin=1&ratingMax=9",
  "hostile list": "/?creator=hostile&perPage=60",
  "empty list": "/?q=Generated&creator=nobody",
  "past the end": "/?page=900",
  "mistake": "/?bpmMin=fast&keys=9",
  "set": set,
  "set without a source": "/chartsets/0000000000000000",
  "chart": chart,
  "empty shelf": "/shelf",
  "shelf": `/shelf?charts=${Buffer.from(detail.charts.map((entry) => entry.chart.hash).join(""), "hex").toString("base64url")}`,
  "mistake in a shelf": "/shelf?charts=AAAA",
  "mistake in a field": "/shelf?add=x",
  "creator": "/creators/mossgrove",
  "unknown creator": "/creators/nobody",
  "compared charts": `/compare?a=${detail.charts[0].chart.hash}&b=${detail.charts[1].chart.hash}`,
  "embedded error": `/embed/charts/${"0".repeat(64)}`,
  "embedded chart": `/embed${chart}`,
  "pack": "/packs/71",
  "identify": "/identify",
  "about": "/about",
  "API": "/docs",
  "endpoint": "/docs/api/chart-lookup",
  "documentation found": "/docs/search?q=hash",
  "all documentation": "/docs/all",
  "note hash": "/docs/note-hash",
  "problem": "/problems/rate-limited",
  "nothing": "/nothing",
};

/** All documentation on one page has their content, and the page of the note hash their layout. */
const DOCUMENTS = {
  "readers": "/docs/readers",
  "variant": "/docs/variant",
  "rating": "/docs/rating",
  "patterns": "/docs/patterns",
  "records": "/docs/records",
  "ROX files": "/docs/rox",
  "preview format": "/docs/preview",
  "hash filter": "/docs/hash-filter",
  "change feed": "/docs/change-feed",
  "exports": "/docs/exports",
};

const THEMES = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  forced: { colorScheme: "dark", forcedColors: "active" },
};

/** In the short form each theme and each width once. */
const FORMS = isLong
  ? Object.keys(THEMES).flatMap((theme) => [320, 390, 1280].map((width) => [theme, width]))
  : [["light", 1280], ["dark", 320]];

async function violations(page) {
  await page.evaluate(AXE);
  const run = (tags) => axe.run(document, { runOnly: tags, resultTypes: ["violations"] });
  const { violations } = await page.evaluate(run, TAGS);
  const describe = (id) => ({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`;
  return violations.flatMap(({ id, nodes }) => nodes.map(describe(id)));
}

for (const [theme, width] of FORMS) {
  const options = { ...THEMES[theme], viewport: { width, height: 900 }, expected: [/status of 40[04]/] };
  pageTest(`axe finds nothing (${theme}, ${width} px)`, options, async (page) => {
    for (const [name, path] of Object.entries(isLong ? { ...PAGES, ...DOCUMENTS } : PAGES)) {
      await page.goto(path);
      if (path === chart) await page.locator("#preview[data-verified]").waitFor();
      if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/${name} ${theme} ${width}.png`, fullPage: true });
      assert.deepEqual(await violations(page), [], name);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
      if (path === chart) {
        await page.getByRole("button", { name: "Sheet" }).click();
        assert.deepEqual(await violations(page), [], "sheet");
      }
    }
    await page.goto("/identify");
    await page.getByLabel("Your songs folder").setInputFiles(site.samples);
    await page.getByRole("button", { name: /^Missing difficulties/ }).click();
    await page.getByText("The sets that lack charts are listed below.").waitFor();
    assert.deepEqual(await violations(page), [], "identified files");
    for (const path of ["/?q=Harbour", set, chart, "/packs/71"]) {
      await page.goto(path);
      await page.locator(".have").first().waitFor();
      assert.deepEqual(await violations(page), [], `${path} with a library`);
    }
  });
}

test("html-validate finds nothing", async () => {
  const { HtmlValidate } = load("html-validate");
  // What HTML leaves to taste, and the length of titles, which are those of charts.
  const taste = ["attr-quotes", "doctype-style", "long-title", "no-implicit-input-type", "no-trailing-whitespace", "void-style"];
  const rules = Object.fromEntries(taste.map((rule) => [rule, "off"]));
  // Check boxes of one name are a list of values.
  rules["form-dup-name"] = ["error", { shared: ["radio", "button", "reset", "submit", "checkbox"] }];
  const validator = new HtmlValidate({ extends: ["html-validate:recommended"], rules });
  const found = [];
  for (const path of Object.values({ ...PAGES, ...DOCUMENTS })) {
    const response = await fetch(site.base + path, { headers: { accept: "text/html" } });
    const { results } = await validator.validateString(await response.text(), path);
    for (const { messages } of results) {
      found.push(...messages.map(({ ruleId, message, line }) => `${path}:${line} ${ruleId}: ${message}`));
    }
  }
  assert.deepEqual(found, []);
  assert.ok(detail.charts.length > 0);
});
