// What people see while servers fail, and afterwards. The tests of this file run one after another.

import assert from "node:assert/strict";

import { control, pageTest, site, until } from "./support.mjs";

const titles = (page) => page.locator("#list h2").allTextContents();
const text = (page) => page.locator("main").textContent();

if (site.hasEngine) {
  pageTest("without the search engine typos are not tolerated", {}, async (page) => {
    await page.goto("/?q=Generted");
    assert.ok((await titles(page)).length > 0, "a typo is tolerated");
    await control("kill engine");
    // A list that no test has asked for: a cached one would be shown.
    await page.goto("/?q=Generated&sort=title&lengthMax=4321");
    assert.match(await text(page), /typos are not tolerated for now/);
    assert.equal((await titles(page))[0], "Generated 000");
    await control("restart engine");
    await until(async () => {
      await page.goto(`/?q=Generated&sort=title&order=desc&perPage=${1 + Math.floor(Math.random() * 60)}`);
      return !/typos are not tolerated/.test(await text(page));
    }, "the engine", 40_000);
  });
}

pageTest("a slow list leaves the old one, dimmed", {}, async (page) => {
  await page.goto("/?creator=generator&sort=title");
  const old = await titles(page);
  await control("freeze database", ...(site.hasEngine ? ["kill engine"] : []));
  try {
    await page.getByRole("checkbox", { name: "5K" }).click({ noWaitAfter: true });
    await page.locator("#results[aria-busy=true]").waitFor();
    assert.deepEqual(await titles(page), old);
  } finally {
    await control("thaw database", ...(site.hasEngine ? ["restart engine"] : []));
  }
  await page.locator("#results:not([aria-busy=true])").waitFor({ timeout: 20_000 });
});

pageTest("offline, and back", { expected: [/ERR_INTERNET_DISCONNECTED/] }, async (page) => {
  await page.goto("/?creator=generator&sort=title");
  const old = await titles(page);
  await page.context().setOffline(true);
  await page.getByRole("checkbox", { name: "4K" }).click();
  await until(async () => /offline/i.test(await page.locator("body").textContent()), "a note");
  assert.deepEqual(await titles(page), old, "the list stays");
  await page.context().setOffline(false);
  const isFiltered = () => new URL(page.url()).searchParams.get("keys") === "4";
  await until(async () => isFiltered() && (await titles(page)).length > 0, "the list");
  await until(async () => !/offline/i.test(await page.locator("body").textContent()), "no note");
});

pageTest("without the database cached lists remain", { expected: [/status of 503/] }, async (page) => {
  const cached = "/?creator=generator&sort=title&mainBpmMax=200";
  await page.goto(cached);
  const before = await titles(page);
  await control("kill database", ...(site.hasEngine ? ["kill engine"] : []));
  await page.goto(cached);
  assert.deepEqual(await titles(page), before);
  const other = await page.goto("/?creator=generator&mainBpmMax=201");
  assert.equal(other.status(), 503);
  assert.match(other.headers()["content-type"], /^text\/html/);
  assert.match(await text(page), /unavailable/i);
  await control("restart database", ...(site.hasEngine ? ["restart engine"] : []));
  await until(async () => {
    const retry = page.getByRole("link", { name: /again/i });
    if ((await retry.count()) > 0) await retry.first().click();
    return (await page.locator("#list").count()) > 0;
  }, "the list", 40_000);
});
