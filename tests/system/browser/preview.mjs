// The preview of a chart.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { aSet, api, journey, pageTest, site, until } from "./support.mjs";

const section = (page) => page.locator("#preview");
const stage = (page) => page.locator("#stage");
const position = (page) => section(page).getByRole("slider", { name: "Position" });
const time = (page) => section(page).locator(".preview-time").textContent();

/** Whether a canvas shows more than one colour. */
const isDrawn = (canvas) =>
  canvas.evaluate((node) => {
    const { data } = node.getContext("2d").getImageData(0, 0, node.width, node.height);
    return new Set(new Uint32Array(data.buffer)).size > 1;
  });

async function open(page, path) {
  await page.goto(path);
  await page.locator("#preview[data-verified]").waitFor();
}

journey("play, pause, seek and link to a moment", async (user, page) => {
  const { chart } = await aSet();
  await open(page, chart);
  assert.equal(await section(page).getAttribute("data-verified"), "true");
  assert.ok(await isDrawn(stage(page).getByRole("img")));
  const start = await position(page).inputValue();
  await user.activate(section(page).getByRole("button", { name: "Play" }));
  await until(async () => Number(await position(page).inputValue()) > Number(start) + 500, "a playing chart");
  await user.activate(section(page).getByRole("button", { name: "Pause" }));
  if (user.mode === "keyboard") {
    await user.moveTo(position(page));
    await page.keyboard.press("Home");
    for (let presses = 0; presses < 8; presses += 1) await page.keyboard.press("ArrowRight");
  } else {
    await position(page).fill("4000");
  }
  assert.match(await time(page), /^0:04 /);
  assert.match(await position(page).getAttribute("aria-valuetext"), /^0:04 of \d+:\d\d$/);
  await user.activate(section(page).getByRole("button", { name: "Share 0:04" }));
  await until(async () => page.url().endsWith("#t=4"), "an address of the moment");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(link, `${site.base}${chart}#t=4`);
  await page.goto("about:blank");
  await open(page, link);
  assert.match(await time(page), /^0:04 /);
}, { modes: ["mouse", "keyboard"] });

journey("loop, scroll, direction and hits", async (user, page) => {
  await open(page, (await aSet()).chart);
  const controls = section(page);
  const height = () => controls.evaluate((node) => node.getBoundingClientRect().height);
  const before = await height();
  await controls.getByRole("slider", { name: "Scroll" }).fill("30");
  await controls.getByRole("combobox", { name: "Rate" }).selectOption("1.5");
  await position(page).fill("1000");
  await user.activate(controls.getByRole("button", { name: "A: loop from here" }));
  await position(page).fill("2000");
  await user.activate(controls.getByRole("button", { name: "B: loop to here" }));
  await controls.getByText("A 0:01").waitFor();
  await controls.getByText("B 0:02").waitFor();
  assert.equal(await height(), before, "nothing moves");
  await user.activate(controls.getByText("Settings"));
  await controls.getByRole("slider", { name: "Volume of hits" }).fill("3");
  await user.activate(controls.getByRole("checkbox", { name: "Scroll up" }));
  // At the end of the loop time runs back.
  await user.activate(controls.getByRole("button", { name: "Play" }));
  await page.evaluate(() => {
    const slider = document.querySelector(".timeline input");
    globalThis.positions = [];
    const record = () => globalThis.positions.push(slider.valueAsNumber) < 1000 && requestAnimationFrame(record);
    record();
  });
  await until(() => page.evaluate(() => positions.some((value, index) => value < positions[index - 1])), "a loop");
  assert.ok(await page.evaluate(() => positions.every((value) => value >= 1000 && value <= 2500)));
  assert.ok(await isDrawn(stage(page).getByRole("img")));
  assert.ok(page.url().endsWith("#rate=1.5&loop=1-2"), page.url());
  await user.activate(controls.getByRole("button", { name: "Clear loop" }));
  assert.equal(await controls.getByText(/^[AB] /).count(), 0);
  const hits = controls.getByRole("button", { name: "Hits" });
  assert.equal(await hits.getAttribute("aria-pressed"), "true");
  await user.activate(hits);
  assert.equal(await hits.getAttribute("aria-pressed"), "false");
  await user.activate(hits);
  await page.reload();
  await controls.getByText("Settings").click();
  assert.equal(await controls.getByRole("slider", { name: "Scroll" }).inputValue(), "30");
  assert.equal(await controls.getByRole("slider", { name: "Volume of hits" }).inputValue(), "5");
  assert.ok(await controls.getByRole("checkbox", { name: "Scroll up" }).isChecked());
}, { modes: ["mouse", "keyboard"] });

journey("another chart of the set begins at the moment and the rate of this one", async (user, page) => {
  const { chart } = await aSet();
  await open(page, `${chart}#t=4&rate=0.75&loop=3-5`);
  assert.match(await time(page), /^0:04 /);
  await section(page).getByText("A 0:03").waitFor();
  const siblings = page.getByRole("navigation", { name: "Charts of this set" }).getByRole("link");
  await user.activate(siblings.and(page.locator(":not([aria-current])")).first());
  await page.waitForURL((url) => url.pathname !== chart && url.hash === "#t=4&rate=0.75&loop=3-5");
  await page.locator("#preview[data-verified]").waitFor();
  assert.match(await time(page), /^0:04 /);
  assert.equal(await section(page).getByRole("combobox", { name: "Rate" }).inputValue(), "0.75");
  await section(page).getByText("B 0:05").waitFor();
}, { modes: ["mouse", "keyboard"] });

pageTest("what is no moment, rate or loop is left out", {}, async (page) => {
  await open(page, `${(await aSet()).chart}#t=x&rate=9&loop=5-3`);
  assert.equal(await section(page).getByRole("combobox", { name: "Rate" }).inputValue(), "1");
  assert.equal(await section(page).getByText(/^[AB] /).count(), 0);
});

pageTest("the curve says what is at the pointer", {}, async (page) => {
  await open(page, (await aSet()).chart);
  const timeline = section(page).locator(".timeline");
  await timeline.locator(".band").waitFor();
  const { width, height } = await timeline.boundingBox();
  await timeline.hover({ position: { x: width / 2, y: height / 2 } });
  const length = Number(await section(page).getAttribute("data-length-ms"));
  const label = await timeline.locator(".preview-at").textContent();
  assert.match(label, /^0:\d\d · \d+\/s( · [a-z]+)?$/);
  assert.ok(label.startsWith(`0:${String(Math.floor(length / 2000)).padStart(2, "0")}`), label);
  await page.mouse.move(0, 0);
  assert.equal(await timeline.locator(".preview-at").isVisible(), false);
});

test("rows have the classes of the test vectors", async () => {
  const { PATTERNS, classify } = await import("../../../services/pages/assets/preview_band.js");
  const file = new URL("../../../crates/chartfile/golden/patterns_v1.json", import.meta.url);
  const { vectors } = JSON.parse(readFileSync(file, "utf8"));
  assert.ok(vectors.length > 50);
  for (const { name, keys, notes, rows } of vectors) {
    const columns = Array.from({ length: keys }, (_, column) => {
      const ofColumn = notes.filter(([, other]) => other === column);
      return { starts: Float64Array.from(ofColumn, ([start]) => start).sort() };
    });
    const { starts, classes } = classify(keys, columns);
    const found = Array.from(starts, (start, row) => [start, PATTERNS[classes[row]] ?? null]);
    assert.deepEqual(found, rows, name);
  }
});

pageTest("space and a click on the notes play and pause", {}, async (page) => {
  await open(page, (await aSet()).chart);
  const button = (name) => section(page).getByRole("button", { name });
  await page.keyboard.press("Space");
  await button("Pause").waitFor();
  assert.equal(await page.evaluate(() => scrollY), 0);
  await page.keyboard.press("Space");
  await button("Play").waitFor();
  await stage(page).getByRole("img").click();
  await button("Pause").waitFor();
  // A field keeps its keys.
  await page.locator("#q").focus();
  await page.keyboard.press("Space");
  assert.equal(await page.locator("#q").inputValue(), " ");
  assert.ok(await button("Pause").isVisible());
});

for (const [width, height] of [[1366, 657], [390, 664]]) {
  pageTest(`play is above the fold at ${width}x${height}`, { viewport: { width, height } }, async (page) => {
    await page.goto((await aSet()).chart);
    const box = await section(page).getByRole("button", { name: "Play" }).boundingBox();
    assert.ok(box.y + box.height <= height, `it ends at ${box.y + box.height}`);
  });
}

journey("from a chart to another one of its set", async (user, page) => {
  const { chart } = await aSet();
  await page.goto(chart);
  const siblings = page.getByRole("navigation", { name: "Charts of this set" }).getByRole("link");
  const count = await siblings.count();
  assert.ok(count > 1);
  const other = siblings.and(page.locator(":not([aria-current])")).first();
  const address = await other.getAttribute("href");
  await user.activate(other);
  await page.waitForURL((url) => url.pathname === address);
  assert.equal(await siblings.count(), count);
  await user.activate(page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("link").last());
  await page.waitForURL(/\/chartsets\//);
  assert.equal(await page.locator("main a[href^='/charts/']").count(), count);
});

pageTest("the map of the chart seeks, and is drawn once", {}, async (page) => {
  await open(page, `/charts/${site.longChart}`);
  const map = stage(page).locator(".map");
  await map.waitFor();
  assert.ok(await isDrawn(map.locator("canvas")));
  const { width, height } = await map.boundingBox();
  const place = () => map.locator("div").boundingBox();
  // The beginning is at the foot, before anything is played.
  const top = (await map.boundingBox()).y;
  await until(async () => (await place()).y - top > 0.5 * height, "the marker below the middle");
  await map.click({ position: { x: width / 2, y: height / 4 } });
  // Later is higher.
  const length = Number(await section(page).getAttribute("data-length-ms"));
  const seconds = (await time(page)).split(" ")[0].split(":").reduce((sum, part) => 60 * sum + Number(part), 0);
  assert.ok(Math.abs(1000 * seconds - 0.75 * length) < 0.02 * length, `${seconds} s of ${length} ms`);
  await map.locator("canvas").evaluate((node) => {
    const context = node.getContext("2d");
    const { fillRect } = context;
    globalThis.drawn = 0;
    context.fillRect = (...sizes) => {
      globalThis.drawn += 1;
      fillRect.apply(context, sizes);
    };
  });
  const before = await place();
  await section(page).getByRole("button", { name: "Play" }).click();
  await until(async () => (await place()).y < before.y, "a marker that moves");
  await section(page).getByRole("button", { name: "Pause" }).click();
  assert.equal(await page.evaluate(() => globalThis.drawn), 0);
  await section(page).getByText("Settings").click();
  await section(page).getByRole("checkbox", { name: "Scroll up" }).click();
  assert.ok(await page.evaluate(() => globalThis.drawn) > 100, "the other way round");
  assert.ok((await place()).y > before.y);
});

journey("two charts play on one clock", async (user, page) => {
  const { chart } = await aSet();
  await page.goto(chart);
  const others = page.getByRole("combobox", { name: "Compare with" });
  const hashes = [chart.split("/").at(-1), await others.locator("option").last().getAttribute("value")];
  await others.selectOption(hashes[1]);
  await user.activate(page.getByRole("button", { name: "Compare" }));
  await page.waitForURL((url) => url.pathname === "/compare" && url.search === `?a=${hashes[0]}&b=${hashes[1]}`);
  const known = await Promise.all(hashes.map((hash) => api(`/api/charts/${hash}`)));
  const notes = page.getByRole("row", { name: /^Notes/ }).getByRole("cell");
  const shown = async () => (await notes.allTextContents()).slice(0, 2).map((text) => Number(text.replaceAll(",", "")));
  assert.deepEqual(await shown(), known.map((found) => found.chart.notes));
  assert.equal(await page.locator(".timeline .strip").count(), 2);
  if (!user.hasScript) return;
  await page.locator("#preview[data-verified=true]").waitFor();
  const canvases = stage(page).getByRole("img");
  assert.equal(await canvases.count(), 2);
  const picture = (index) => canvases.nth(index).evaluate((node) => node.toDataURL());
  const before = [await picture(0), await picture(1)];
  await user.activate(section(page).getByRole("button", { name: "Play" }));
  await until(async () => (await picture(0)) !== before[0] && (await picture(1)) !== before[1], "two stages that move");
  await user.activate(section(page).getByRole("button", { name: "Pause" }));
  await stage(page).locator(".map").nth(1).waitFor();
  const markers = () => stage(page).locator(".map div").evaluateAll((nodes) => nodes.map((node) => node.style.transform));
  await position(page).fill("4000");
  const [one, other] = await markers();
  assert.equal(one, other, "one clock");
  await user.activate(section(page).getByRole("button", { name: "Sheet" }));
  assert.equal(await stage(page).getByRole("listitem").first().locator("canvas").count(), 2);
});

for (const width of [360, 480, 1280]) {
  pageTest(`the button of the settings keeps its place (${width} px)`, { viewport: { width, height: 800 } }, async (page) => {
    await open(page, (await aSet()).chart);
    const button = section(page).getByText("Settings");
    const before = await button.boundingBox();
    await button.click();
    const volume = await section(page).getByRole("slider", { name: "Volume of hits" }).boundingBox();
    const after = await button.boundingBox();
    assert.ok(Math.hypot(after.x - before.x, after.y - before.y) < 1, `from ${before.x}, ${before.y} to ${after.x}, ${after.y}`);
    assert.ok(volume.y >= before.y + before.height, "what it opens is below");
  });
}

pageTest("the mark of the histogram shows in forced colours", { forcedColors: "active" }, async (page) => {
  const { items } = await api("/api/chartsets?sort=rating&order=desc&perPage=1");
  const { charts } = await api(`/api/chartsets/${items[0].id}?include=rating`);
  await page.goto(`/charts/${charts.find(({ chart }) => chart.rating).chart.hash}`);
  const paint = (selector, property) =>
    page.locator(`.histogram ${selector}`).first().evaluate((node, name) => getComputedStyle(node)[name], property);
  assert.notEqual(await paint(".mark", "stroke"), await paint("path:not(.mark)", "fill"));
});

pageTest("the timeline is that of the page without scripts", {}, async (page) => {
  const { chart } = await aSet();
  const html = await (await fetch(site.base + chart, { headers: { accept: "text/html" } })).text();
  await open(page, chart);
  const path = await section(page).locator(".timeline path").first().getAttribute("d");
  assert.ok(path.length > 10 && html.includes(path));
});

pageTest("a hidden page pauses", {}, async (page) => {
  await open(page, (await aSet()).chart);
  await section(page).getByRole("button", { name: "Play" }).click();
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await section(page).getByRole("button", { name: "Play" }).waitFor();
});

pageTest("reduced motion starts with the sheet", { reducedMotion: "reduce" }, async (page) => {
  const { chart } = await aSet();
  await open(page, `${chart}#t=6`);
  const strips = stage(page).getByRole("listitem");
  assert.ok(await strips.first().isVisible());
  assert.equal(await stage(page).getByRole("img").isVisible(), false);
  assert.ok(await isDrawn(strips.first().locator("canvas")));
  assert.equal(await stage(page).locator("[aria-current=true] a").getAttribute("href"), "#t=4.8");
});

pageTest("paper shows the sheet", { colorScheme: "dark" }, async (page) => {
  await open(page, (await aSet()).chart);
  await page.evaluate(() => {
    addEventListener("beforeprint", () => {
      const { data } = document.querySelector(".preview-sheet canvas").getContext("2d").getImageData(0, 0, 1, 1);
      globalThis.paper = [...data];
    });
  });
  const pdf = await page.pdf();
  assert.ok(pdf.length > 10_000);
  assert.deepEqual(await page.evaluate(() => globalThis.paper), [255, 255, 255, 255]);
  assert.ok(await stage(page).getByRole("img").isVisible(), "the screen is as before");
});

pageTest("the sheet of a long chart has pages of one scale", {}, async (page) => {
  await open(page, `/charts/${site.longChart}`);
  await section(page).getByRole("button", { name: "Sheet" }).click();
  const strips = stage(page).getByRole("listitem");
  const times = () => strips.locator("a").allTextContents();
  assert.deepEqual((await times()).slice(0, 3), ["0:00", "0:04", "0:09"]);
  assert.equal(await strips.count(), 40);
  assert.equal(await stage(page).getByRole("button", { name: "Earlier" }).isDisabled(), true);
  await stage(page).getByRole("button", { name: "Later" }).click();
  assert.equal((await times())[0], "3:12");
  await position(page).fill("0");
  assert.equal((await times())[0], "0:00");
});

pageTest("a preview of other notes is noticed", {}, async (page) => {
  const { chart } = await aSet();
  const preview = await api(`/api${chart}/preview`);
  preview.columns[0][0] += 1;
  await page.route("**/preview", (route) => route.fulfill({ json: preview }));
  await page.goto(chart);
  await page.locator("#preview[data-verified=false]").waitFor();
  assert.match(await section(page).getByRole("status").textContent(), /do not have the note hash/);
});

pageTest("a preview that fails can be tried again", { expected: [/status of 503/] }, async (page) => {
  const { chart } = await aSet();
  await page.route("**/preview", (route) => route.fulfill({ status: 503 }), { times: 1 });
  await page.goto(chart);
  const retry = section(page).getByRole("button", { name: "Try again" });
  await retry.waitFor();
  assert.ok(await section(page).locator(".timeline svg").isVisible(), "the curve stays");
  const empty = await stage(page).evaluate((node) => node.getBoundingClientRect().height);
  assert.equal(empty, 0, "no place for notes");
  await retry.click();
  await page.locator("#preview[data-verified=true]").waitFor();
});

pageTest("a theme redraws the preview", { colorScheme: "light", expected: [/getImageData/] }, async (page) => {
  await open(page, (await aSet()).chart);
  const corner = () =>
    stage(page).getByRole("img").evaluate((node) => [...node.getContext("2d").getImageData(0, 0, 1, 1).data].join());
  const light = await corner();
  await page.emulateMedia({ colorScheme: "dark" });
  await until(async () => (await corner()) !== light, "dark colours");
  await page.emulateMedia({ colorScheme: "light", forcedColors: "active" });
  assert.ok(await isDrawn(stage(page).getByRole("img")));
});
