// What people do on the pages: by mouse, by keyboard alone, and without scripts.

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";

import { aSet, api, journey, pageTest, site, until } from "./support.mjs";

const titles = (page) => page.locator("#list h2").allTextContents();
const search = (page) => page.locator("#q");

const scroll = (page) => page.evaluate(() => Math.round(scrollY));
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());

/** Waits until a page is scrolled to a place. */
async function isAt(page, place) {
  await until(async () => Math.abs((await scroll(page)) - place) <= 2, `a page that is scrolled to ${place}`, 5_000)
    .catch(async (error) => assert.fail(`${error.message}, not ${await scroll(page)}`));
}

/** Waits until the list is that of an address which fulfils a condition. */
async function listed(page, condition) {
  await page.waitForURL((url) => condition(url.searchParams));
  await page.locator("#results:not([aria-busy=true])").waitFor();
}

journey("search", async (user, page) => {
  await page.goto("/");
  await user.type(search(page), "Generated 007");
  await page.keyboard.press("Enter");
  await listed(page, (query) => query.get("q") === "Generated 007");
  assert.equal((await titles(page))[0], "Generated 007");
  assert.match(await page.locator("#count").textContent(), /\d/);
});

journey("combine four filters, then remove one", async (user, page) => {
  await page.goto("/");
  await user.activate(page.getByRole("checkbox", { name: "4K" }));
  await user.type(page.locator("#creator"), "generator");
  await user.type(page.locator("#mainBpmMin"), "150");
  await user.type(page.locator("#lengthMax"), "60:00");
  await page.keyboard.press("Enter");
  await listed(page, (query) => query.get("lengthMax") === "3600" && query.get("keys") === "4");
  await page.getByRole("link", { name: "Clear 3 filters" }).waitFor();
  assert.equal(await page.locator("#lengthMax").inputValue(), "1:00:00");
  assert.deepEqual(await page.locator("ul.chips li").allTextContents(), [
    "Remove filter Creator generator ×", "Remove filter BPM from 150 ×", "Remove filter Length up to 1:00:00 ×",
  ]);
  const narrow = await page.locator("#count").textContent();
  await user.activate(page.getByRole("link", { name: "Remove filter BPM" }));
  await listed(page, (query) => !query.has("mainBpmMin"));
  await page.getByRole("link", { name: "Clear 2 filters" }).waitFor();
  assert.notEqual(await page.locator("#count").textContent(), narrow);
  if (user.hasScript) assert.equal(await focused(page), "count");
});

pageTest("a mistake keeps the old list", { expected: [/status of 400/] }, async (page) => {
  await page.goto("/?creator=generator&sort=title");
  const old = await titles(page);
  await page.locator("#mainBpmMin").fill("200");
  await page.locator("#mainBpmMax").fill("100");
  await page.keyboard.press("Enter");
  await page.getByText("BPM begins above its end").waitFor();
  assert.deepEqual(await titles(page), old);
  assert.equal(await focused(page), "mainBpmMin");
  await page.locator("#mainBpmMax").fill("210");
  await page.keyboard.press("Enter");
  await listed(page, (query) => query.get("mainBpmMax") === "210");
  await until(async () => (await page.locator("#filters .error").count()) === 0, "no error");
});

journey("four taps find 7K jumpstreams of a level and a BPM", async (user, page) => {
  await page.goto("/");
  await user.activate(page.getByRole("checkbox", { name: "7K" }));
  await user.activate(page.getByRole("checkbox", { name: "jumpstream" }));
  if (!user.hasScript) await page.keyboard.press("Enter");
  await listed(page, (query) => query.get("keys") === "7" && query.get("pattern") === "jumpstream:20");
  await user.activate(page.getByRole("link", { name: "Hard" }));
  await listed(page, (query) => query.get("ratingMin") === "3" && query.get("ratingMax") === "4");
  await user.activate(page.getByRole("link", { name: "150–170" }));
  await listed(page, (query) => query.get("mainBpmMin") === "150" && query.get("pattern") === "jumpstream:20");
  assert.equal(await page.locator("#mainBpmMax").inputValue(), "170");
  await user.activate(page.getByRole("link", { name: "Clear 3 filters" }));
  await listed(page, (query) => query.toString() === "keys=7");
});

journey("filters of a phone", async (user, page) => {
  await page.goto("/?creator=generator");
  await user.activate(page.locator("#more summary"));
  await user.type(page.locator("#mainBpmMin"), "150");
  const show = page.getByRole("button", { name: /^Show \d+ sets$/ });
  await show.waitFor();
  assert.ok(await show.evaluate((node) => node.getBoundingClientRect().bottom <= innerHeight), "it is in view");
  await user.activate(show);
  await listed(page, (query) => query.get("mainBpmMin") === "150");
  assert.equal(await page.locator("#more").getAttribute("open"), null);
  if (user.hasScript) {
    await user.activate(page.locator("#more summary"));
    await page.locator("#creator").focus();
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#more").getAttribute("open"), null);
  }
}, { viewport: { width: 390, height: 740 } });

pageTest("the keys of the last list are those of the next visit", {}, async (page) => {
  await page.goto("/");
  await page.getByRole("checkbox", { name: "7K" }).click();
  await listed(page, (query) => query.get("keys") === "7");
  await page.goto("/about");
  await page.locator("a.brand").click();
  await listed(page, (query) => query.get("keys") === "7");
  await page.getByRole("link", { name: "Clear the filter" }).click();
  await listed(page, (query) => !query.has("keys"));
  await page.goto("/about");
  await page.locator("a.brand").click();
  await page.locator("#list").waitFor();
  assert.equal(new URL(page.url()).search, "");
});

journey("examples of typed filters", async (user, page) => {
  await page.goto("/");
  await user.activate(page.getByRole("button", { name: "Examples of searches" }));
  await user.activate(page.getByRole("link", { name: "stars=3-4 length<2:00" }));
  await listed(page, (query) => query.get("ratingMin") === "3" && query.get("lengthMax") === "119.999");
});

journey("a typo leads to the closest title", async (user, page) => {
  await page.goto("/");
  await user.type(search(page), "Harbor Lihgts");
  await page.keyboard.press("Enter");
  await listed(page, (query) => query.has("q"));
  await user.activate(page.locator("#list").getByRole("link", { name: "Harbour Lights" }).first());
  await page.waitForURL(/\/chartsets\//);
}, { modes: ["mouse", "no script"] });

journey("page, and back to the same place", async (user, page) => {
  await page.goto("/?sort=title&creator=generator");
  const first = await titles(page);
  const next = page.getByRole("link", { name: "Next" });
  if (user.mode === "keyboard") await user.moveTo(next);
  else await next.scrollIntoViewIfNeeded();
  const place = await scroll(page);
  assert.ok(place > 0);
  await user.activate(next);
  await listed(page, (query) => query.has("after"));
  await until(async () => (await titles(page))[0] !== first[0], "the second page");
  assert.ok((await scroll(page)) < place, "a page is read from its beginning");
  await page.goBack();
  await until(async () => (await titles(page))[0] === first[0], "the first page");
  await isAt(page, place);
  if (user.hasScript) assert.equal(await focused(page), "Next");
});

journey("open a set, and back to it", async (user, page) => {
  await page.goto("/?sort=title&creator=generator");
  const link = page.locator("#list h2 a").nth(20);
  if (user.mode === "keyboard") await user.moveTo(link);
  else await link.scrollIntoViewIfNeeded();
  const place = await scroll(page);
  assert.ok(place > 0);
  await user.activate(link);
  await page.waitForURL(/\/chartsets\//);
  await page.goBack();
  await page.waitForURL((url) => url.pathname === "/");
  await isAt(page, place);
  if (user.hasScript) await until(async () => (await focused(page)) === "Generated 020", "the focus on the link");
});

journey("reload at the same place", async (user, page) => {
  await page.goto("/?sort=title&creator=generator");
  await page.mouse.wheel(0, 1500);
  await isAt(page, 1500);
  await page.reload();
  await isAt(page, 1500);
}, { modes: ["mouse", "no script"] });

pageTest("an edited field can be left by Tab while its list loads", {}, async (page) => {
  await page.goto("/");
  for (const [id, value] of [["mainBpmMax", "300"], ["lengthMax", "3600"], ["ratingMax", "90"]]) {
    await page.locator(`#${id}`).fill(value);
    await page.keyboard.press("Tab");
    const next = await focused(page);
    await listed(page, (query) => query.get(id) === value);
    assert.ok(next && (await focused(page)) === next, `after ${id} the focus is on ${await focused(page)}, not ${next}`);
  }
});

journey("an order does not scroll a list that is at its start", async (user, page) => {
  await page.goto("/?creator=generator");
  const title = page.getByRole("navigation", { name: "Sort" }).getByRole("link", { name: /^Title/ });
  await user.activate(title);
  await listed(page, (query) => query.get("sort") === "title");
  await until(async () => (await titles(page))[0] === "Generated 000", "a sorted list");
  assert.equal(await scroll(page), 0);
  assert.match(await focused(page), /^Title/, "the next press reverses it");
}, { modes: ["mouse", "keyboard"] });

pageTest("an order is shown from its start", {}, async (page) => {
  await page.goto("/?creator=generator");
  await page.mouse.wheel(0, 900);
  await isAt(page, 900);
  await page.getByRole("navigation", { name: "Sort" }).getByRole("link", { name: /^Title/ }).evaluate((link) => link.click());
  await until(async () => (await titles(page))[0] === "Generated 000", "a sorted list");
  const top = await page.locator("#list li h2").first().evaluate((node) => node.getBoundingClientRect().top);
  assert.ok(top >= 0 && top < 200, `the first set is at ${top}`);
});

pageTest("a wait is announced once", { expected: [/status of 429/] }, async (page) => {
  await page.goto("/");
  await page.evaluate(() => {
    globalThis.announced = [];
    new MutationObserver((records) => {
      const alert = document.querySelector("[role=alert]");
      const isIn = ({ target }) => alert && (alert.contains(target) || target.contains(alert));
      if (records.some(isIn)) announced.push(alert.textContent);
    }).observe(document.body, { childList: true, characterData: true, subtree: true });
  });
  await page.route("**/?keys=4", (route) => route.fulfill({ status: 429, headers: { "retry-after": "3" } }), { times: 1 });
  await page.getByRole("checkbox", { name: "4K" }).click();
  await page.getByText("Too many requests").waitFor();
  await listed(page, (query) => query.get("keys") === "4");
  assert.equal((await page.evaluate(() => announced)).length, 1, JSON.stringify(await page.evaluate(() => announced)));
});

pageTest("the results are near by keyboard", {}, async (page) => {
  await page.goto("/");
  const first = page.locator("#list h2 a").first();
  const presses = async () => {
    for (let count = 1; ; count += 1) {
      await page.keyboard.press("Tab");
      if (await first.evaluate((node) => node === document.activeElement)) return count;
      assert.ok(count < 100);
    }
  };
  const all = await presses();
  // With a filter each; the first link of the page skips them.
  assert.ok(all <= 64, `${all} tab stops`);
  await page.goto("/?creator=generator");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await presses(), 1);
});

pageTest("links that lead elsewhere have other names", {}, async (page) => {
  await page.goto("/?creator=generator");
  const links = await page.getByRole("link").evaluateAll((nodes) =>
    nodes.map((node) => [node.textContent.replace(/\s+/g, " ").trim(), node.getAttribute("href")]));
  const addresses = Map.groupBy(links, ([name]) => name);
  const targets = (name) => new Set(addresses.get(name)?.map(([, address]) => address)).size;
  const ambiguous = ["Random", "Download", "Source"].filter((name) => targets(name) > 1);
  assert.deepEqual(ambiguous, []);
});

journey("a new search has the best match first", async (user, page) => {
  const order = () => page.locator("nav.sort [aria-current]").textContent();
  for (const path of ["/?keys=4", "/about"]) {
    await page.goto(path);
    await user.type(search(page), "Generated");
    await page.keyboard.press("Enter");
    await listed(page, (query) => query.get("sort") === "relevance");
    await until(async () => /^Best match/.test(await order()), "best match");
  }
  await user.activate(page.getByRole("navigation", { name: "Sort" }).getByRole("link", { name: "Newest" }));
  await listed(page, (query) => !query.has("sort"));
  await until(async () => /^Newest/.test(await order()), "newest");
  await user.type(search(page), "Generated 00");
  await page.keyboard.press("Enter");
  await listed(page, (query) => query.get("q") === "Generated 00" && !query.has("sort"));
});

pageTest("a link to a part of the page keeps the list", {}, async (page) => {
  await page.goto("/?creator=generator&sort=title");
  await page.getByRole("checkbox", { name: "4K" }).click();
  await listed(page, (query) => query.get("keys") === "4");
  const requests = [];
  page.on("request", (request) => requests.push(request.url()));
  await page.getByRole("link", { name: "Skip to content" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.hash === "#list");
  await page.goBack();
  await page.waitForURL((url) => url.hash === "");
  assert.deepEqual(requests, []);
  assert.equal(new URL(page.url()).searchParams.get("keys"), "4");
});

journey("share an address", async (user, page) => {
  await page.goto("/");
  await user.type(search(page), "Generated");
  await page.keyboard.press("Enter");
  await listed(page, (query) => query.has("q"));
  await user.activate(page.getByRole("navigation", { name: "Sort" }).getByRole("link", { name: "Title" }));
  await listed(page, (query) => query.get("sort") === "title");
  await until(async () => (await titles(page))[0] === "Generated 000", "a sorted list");
  const shared = await titles(page);
  const other = await page.context().browser().newPage();
  await other.goto(page.url());
  assert.deepEqual(await titles(other), shared);
  await other.close();
});

journey("copy a note hash, and paste it", async (user, page) => {
  const { chart } = await aSet();
  await page.goto(chart);
  let hash = chart.split("/").at(-1);
  await user.activate(page.locator("summary").filter({ hasText: "Note hash" }));
  assert.equal(await page.locator("#hash").textContent(), hash);
  if (user.hasScript) {
    await user.activate(page.getByRole("button", { name: "Copy the note hash" }));
    await until(async () => (await page.evaluate(() => navigator.clipboard.readText())) === hash, "a copied hash");
    hash = await page.evaluate(() => navigator.clipboard.readText());
  }
  for (const pasted of [hash, hash.toUpperCase()]) {
    await page.goto("/");
    await user.type(search(page), pasted);
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.pathname === chart);
  }
});

journey("a random set of a filter", async (user, page) => {
  await page.goto("/?creator=generator");
  await user.activate(page.locator("#results").getByRole("link", { name: "Random of these" }));
  await page.waitForURL(/\/(chartsets|charts)\/[0-9a-f]+$/);
  assert.match(await page.locator("main").textContent(), /Generated/);
});

journey("a mistake is shown at its field, above the rest", async (user, page) => {
  const response = await page.goto("/?mainBpmMin=fast&creator=generator");
  assert.equal(response.status(), 400);
  assert.ok((await titles(page)).every((title) => title.startsWith("Generated")));
  await page.getByText("The list is shown without BPM").waitFor();
  const field = page.locator("#mainBpmMin");
  assert.equal(await field.getAttribute("aria-invalid"), "true");
  const described = await field.getAttribute("aria-describedby");
  assert.match(await page.locator(`#${described}`).textContent(), /number/);
  await user.type(field, "150");
  await page.keyboard.press("Enter");
  await listed(page, (query) => query.get("mainBpmMin") === "150");
  await until(async () => (await titles(page)).length > 0, "a list");
}, { expected: [/status of 400/] });

pageTest("names of filters are completed", {}, async (page) => {
  await page.goto("/");
  const suggested = () => page.locator("#suggestions option").evaluateAll((options) => options.map(({ value }) => value));
  for (const [typed, expected] of [
    ["camellia ju", ["camellia jumptrill>", "camellia jumpstream>"]],
    ["LN", ["ln>="]],
    ["l", []],
    ["camellia", []],
    ["stars>4", []],
  ]) {
    await search(page).fill(typed);
    assert.deepEqual(await suggested(), expected, typed);
  }
});

journey("put charts on a shelf", async (user, page) => {
  const { detail } = await aSet();
  const [first, second] = detail.charts.map(({ chart }) => chart.hash);
  await page.goto(`/charts/${first}`);
  if (user.hasScript) {
    await user.activate(page.getByRole("link", { name: "Add to your shelf" }));
    await page.getByRole("link", { name: "Remove from your shelf" }).waitFor();
    await page.goto(`/charts/${second}`);
    await user.activate(page.getByRole("link", { name: "Add to your shelf" }));
    await user.activate(page.locator("header").getByRole("link", { name: "Shelf (2)" }));
  } else {
    await page.getByRole("link", { name: "Put on a shelf" }).click();
    await page.getByRole("textbox", { name: /Note hash/ }).fill(`${site.base}/charts/${second}`);
    await page.getByRole("button", { name: "Add" }).click();
  }
  await page.waitForURL((url) => url.pathname === "/shelf" && url.searchParams.get("charts").length === 86);
  const charts = page.locator(".charts-table tbody a[href^='/charts/']");
  const hrefs = async () => charts.evaluateAll((links) => links.map((link) => link.getAttribute("href")));
  assert.deepEqual(await hrefs(), [`/charts/${first}`, `/charts/${second}`]);
  await page.getByRole("combobox", { name: "Chart", exact: true }).selectOption(first);
  await user.activate(page.getByRole("button", { name: "Remove" }));
  await page.waitForURL((url) => url.searchParams.get("charts").length === 43);
  assert.deepEqual(await hrefs(), [`/charts/${second}`]);
  if (!user.hasScript) return;
  await user.activate(page.getByRole("button", { name: "Replace your shelf" }));
  await page.locator("header").getByRole("link", { name: "Shelf (1)" }).waitFor();
});

journey("put a chart of the list on the shelf", async (user, page) => {
  await page.goto("/?q=Harbour+Lights&creator=mossgrove");
  const button = page.getByRole("button", { name: /^On your shelf: / }).first();
  await user.activate(button);
  const link = page.locator("header").getByRole("link", { name: "Shelf (1)" });
  await link.waitFor();
  assert.equal(await button.getAttribute("aria-pressed"), "true");
  assert.equal(new URL(page.url()).pathname, "/", "the link below it is not followed");
  // Another list has the buttons too.
  await user.activate(page.locator(".sort a").first());
  await until(async () => (await page.locator(".put[aria-pressed=true]").count()) === 1, "the chart on the shelf");
  await user.activate(link);
  await page.waitForURL(/\/shelf\?/);
  await user.activate(page.getByRole("button", { name: /^On your shelf: / }));
  await page.locator("header").getByRole("link", { name: "Shelf", exact: true }).waitFor();
}, { modes: ["mouse", "keyboard"] });

pageTest("the button of the shelf is for fingers", { viewport: { width: 360, height: 664 }, hasTouch: true, isMobile: true }, async (page) => {
  const { set } = await aSet();
  for (const path of ["/?q=Harbour+Lights&creator=mossgrove", set]) {
    await page.goto(path);
    const button = page.getByRole("button", { name: /^On your shelf: / }).first();
    const { width, height } = await button.boundingBox();
    assert.ok(width >= 32 && height >= 32, `${path}: ${width} x ${height}`);
    const isOn = await button.getAttribute("aria-pressed");
    await button.tap();
    assert.notEqual(await button.getAttribute("aria-pressed"), isOn);
  }
});

journey("a shelf of more than 100 charts", async (user, page) => {
  const { detail } = await aSet();
  const known = detail.charts.map(({ chart }) => chart.hash);
  const unknown = Array.from({ length: 130 }, (_, index) => index.toString(16).padStart(64, "0"));
  await page.addInitScript((shelf) => localStorage.setItem("shelf", shelf), [...unknown, ...known].join(" "));
  await page.goto("/");
  const count = 130 + known.length;
  await user.activate(page.locator("header").getByRole("link", { name: `Shelf (${count})` }));
  const shelf = page.locator("#shelf");
  await shelf.getByText(`1–100 of ${count} charts`).waitFor();
  assert.ok(await shelf.getByText("neither a text nor a feed. 100 charts of this page are not in the index.").isVisible());
  assert.equal(await shelf.getByRole("textbox").count(), 0);
  await user.activate(shelf.getByRole("link", { name: "Page 2" }));
  await shelf.getByText(`101–${count} of ${count} charts`).waitFor();
  const charts = shelf.locator("tbody th a");
  assert.deepEqual(await charts.evaluateAll((links) => links.map((link) => link.pathname)), known.map((hash) => `/charts/${hash}`));
  assert.equal(await shelf.locator(".put").count(), known.length);
  const isInMain = () => page.evaluate(() => document.activeElement.id === "main");
  assert.ok(await isInMain(), "the focus is not lost");
  const address = page.url();
  await page.getByRole("link", { name: "Skip to content" }).focus();
  await page.keyboard.press("Enter");
  assert.equal(page.url(), address);
  await page.goto("/shelf#charts=AAAA");
  await page.getByRole("alert").getByText("a part of its address may be missing").waitFor();
  assert.equal(await shelf.locator(".put").count(), known.length, "one for each chart");
  const many = Buffer.alloc(1_001 * 32).map((_, at) => at >> (at % 2 ? 5 : 13)).toString("base64url");
  await page.goto(`/shelf#charts=${many}`);
  await page.getByRole("alert").getByText("more than 1,000 charts").waitFor();
  await page.evaluate(() => (location.hash = ""));
  await shelf.getByRole("textbox").waitFor();
}, { modes: ["mouse", "keyboard"] });

pageTest("handles set the range of the difficulty", {}, async (page) => {
  await page.goto("/");
  const [least, greatest] = [0, 1].map((end) => page.locator(".histogram input").nth(end));
  await least.fill("1.5");
  await listed(page, (query) => query.get("ratingMin") === "1.5" && !query.has("ratingMax"));
  assert.equal(await page.locator("#ratingMin").inputValue(), "1.5");
  assert.equal(await page.locator(".histogram rect").first().getAttribute("width"), "6");
  await greatest.focus();
  await page.keyboard.press("ArrowLeft");
  await listed(page, (query) => query.get("ratingMax") === "6.45");
  // They do not pass each other.
  await greatest.fill("1");
  await listed(page, (query) => query.get("ratingMax") === "1.5");
  assert.equal(await greatest.inputValue(), "1.5");
  await page.locator("#ratingMin").fill("0.5");
  assert.equal(await least.inputValue(), "0.5");
});

pageTest("the histogram is that of the filter once someone points at it", { expected: [/status of 503/] }, async (page) => {
  const asked = [];
  page.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname === "/ratings") asked.push(search);
  });
  const shown = async () => [await page.locator("fieldset:has(.histogram) legend small").textContent(),
    ...await page.locator(".histogram path").evaluateAll((bars) => bars.map((bar) => bar.getAttribute("d")))];
  await page.clock.install();
  await page.goto("/");
  const all = await shown();
  assert.equal(all[0], "all charts");
  await page.locator(".histogram").hover();
  await page.getByRole("checkbox", { name: "stream", exact: true }).check();
  await listed(page, (query) => query.get("pattern") === "stream:20");
  assert.deepEqual([await shown(), asked], [all, []]);
  const place = await page.locator("#ratingMin").boundingBox();
  await page.locator(".histogram").hover();
  await page.getByText("matching sets").waitFor();
  const found = await shown();
  assert.ok(found.length > 1);
  assert.notDeepEqual(found.slice(1), all.slice(1));
  assert.deepEqual(await page.locator("#ratingMin").boundingBox(), place);
  // The range leaves the bars as they are.
  await page.locator(".histogram input").first().fill("1.5");
  await listed(page, (query) => query.get("ratingMin") === "1.5");
  assert.equal(await page.locator(".histogram rect").first().getAttribute("width"), "6");
  await page.locator("#ratingMax").focus();
  assert.deepEqual([await shown(), asked], [found, ["?pattern=stream%3A20"]]);
  // Those of all charts stay where the server does not count.
  await page.route("**/ratings?*", (route) => route.fulfill({ status: 503, body: "" }));
  await page.getByRole("checkbox", { name: "4K" }).check();
  await listed(page, (query) => query.get("keys") === "4");
  const refused = page.waitForResponse("**/ratings?*");
  await page.locator("#ratingMin").focus();
  await refused;
  assert.deepEqual([await shown(), asked.length], [all, 2]);
  // Asked again, but not at once.
  await page.unroute("**/ratings?*");
  await page.locator("#ratingMax").focus();
  assert.equal(asked.length, 2);
  await page.clock.fastForward(5_000);
  await page.locator("#ratingMin").focus();
  await page.getByText("matching sets").waitFor();
  assert.equal(asked.length, 3);
  // Back, with the focus in the field.
  await page.goBack();
  await until(async () => asked.length === 4, "a request for the bars of the list before", 5_000);
  await until(async () => isDeepStrictEqual(await shown(), found), "its bars", 5_000);
});

pageTest("a mistake is shown above the sheet of filters", { viewport: { width: 390, height: 664 }, expected: [/status of 400/] }, async (page) => {
  await page.goto("/");
  await page.locator("#more summary").click();
  await page.locator("#mainBpmMin").fill("fast");
  await page.keyboard.press("Enter");
  const error = page.locator("#mainBpmMin-error");
  await error.waitFor();
  const isOnTop = () => error.evaluate((node) => {
    const { left, top } = node.getBoundingClientRect();
    return node.contains(document.elementFromPoint(left + 4, top + 4));
  });
  assert.ok(await isOnTop());
});

pageTest("hostile names are text", { viewport: { width: 320, height: 640 } }, async (page) => {
  const { items } = await api("/api/chartsets?creator=hostile&perPage=60");
  assert.ok(items.length >= 14);
  const addresses = ["/?creator=hostile&perPage=60", "/?creator=hostile&view=table&perPage=60"];
  for (const { id } of items) {
    const { charts } = await api(`/api/chartsets/${id}`);
    addresses.push(`/chartsets/${id}`, `/charts/${charts[0].chart.hash}`);
  }
  for (const address of addresses) {
    await page.goto(address);
    assert.doesNotMatch(await page.title(), /injected$/, address);
    assert.equal(await page.locator("main img, main script").count(), 0, address);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${address} is ${wide} px too wide`);
  }
});

pageTest("what is typed while a list loads stays", {}, async (page) => {
  await page.goto("/");
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await page.route("**/?creator=generator", async (route) => {
    await released;
    await route.continue();
  });
  await page.locator("#creator").fill("generator");
  await page.keyboard.press("Enter");
  await page.locator("#results[aria-busy=true]").waitFor();
  await page.locator("#mainBpmMin").fill("150");
  release();
  await listed(page, (query) => query.get("creator") === "generator");
  assert.equal(await page.locator("#mainBpmMin").inputValue(), "150");
  await page.keyboard.press("Enter");
  await listed(page, (query) => query.get("mainBpmMin") === "150" && query.get("creator") === "generator");
});

pageTest("keys of the list", {}, async (page) => {
  await page.goto("/?creator=generator");
  await page.keyboard.press("/");
  assert.equal(await focused(page), "q");
  await page.keyboard.press("Escape");
  await page.locator("main").focus();
  await page.keyboard.press("j");
  assert.equal(await focused(page), (await titles(page))[0]);
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  assert.equal(await focused(page), (await titles(page))[0]);
  await page.keyboard.press("]");
  await listed(page, (query) => query.has("after"));
  await page.keyboard.press("[");
  await listed(page, (query) => !query.has("after") && query.get("page") !== "2");
});
