// The preview of a chart.

import assert from "node:assert/strict";

import { aSet, api, journey, pageTest, site, until } from "./support.mjs";

const section = (page) => page.locator("#preview");
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
  assert.ok(await isDrawn(section(page).getByRole("img")));
  await user.activate(section(page).getByRole("button", { name: "Play" }));
  await until(async () => (await time(page)).startsWith("0:01"), "a playing chart");
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
  await user.activate(section(page).getByRole("button", { name: "Copy link to this moment" }));
  await until(async () => page.url().endsWith("#t=4"), "an address of the moment");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(link, `${site.base}${chart}#t=4`);
  await page.goto("about:blank");
  await open(page, link);
  assert.match(await time(page), /^0:04 /);
}, { modes: ["mouse", "keyboard"] });

journey("loop, speed, direction and ticks", async (user, page) => {
  await open(page, (await aSet()).chart);
  const controls = section(page);
  await position(page).fill("1000");
  await user.activate(controls.getByRole("button", { name: "Loop from here" }));
  await position(page).fill("2000");
  await user.activate(controls.getByRole("button", { name: "Loop to here" }));
  assert.match(await controls.getByRole("status").textContent(), /Loops from 0:01 to 0:02/);
  await user.activate(controls.getByRole("checkbox", { name: "Ticks" }));
  await user.activate(controls.getByRole("checkbox", { name: "Scroll up" }));
  await controls.getByRole("slider", { name: "Speed" }).fill("30");
  await controls.getByRole("combobox", { name: "Tempo" }).selectOption("1.5");
  // At the end of the loop time runs back.
  await user.activate(controls.getByRole("button", { name: "Play" }));
  await page.evaluate(() => {
    const slider = document.querySelector(".preview-timeline input");
    globalThis.positions = [];
    const record = () => globalThis.positions.push(slider.valueAsNumber) < 1000 && requestAnimationFrame(record);
    record();
  });
  await until(() => page.evaluate(() => positions.some((value, index) => value < positions[index - 1])), "a loop");
  assert.ok(await page.evaluate(() => positions.every((value) => value >= 1000 && value <= 2500)));
  assert.ok(await isDrawn(controls.getByRole("img")));
}, { modes: ["mouse", "keyboard"] });

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
  const strips = section(page).getByRole("listitem");
  assert.ok(await strips.first().isVisible());
  assert.equal(await section(page).getByRole("img").isVisible(), false);
  assert.ok(await isDrawn(strips.first().locator("canvas")));
  assert.equal(await section(page).locator("[aria-current=true] a").getAttribute("href"), "#t=4.8");
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
  assert.ok(await section(page).getByRole("img").isVisible(), "the screen is as before");
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
  await section(page).getByRole("button", { name: "Try again" }).click();
  await page.locator("#preview[data-verified=true]").waitFor();
});

pageTest("a theme redraws the preview", { colorScheme: "light", expected: [/getImageData/] }, async (page) => {
  await open(page, (await aSet()).chart);
  const corner = () =>
    section(page).getByRole("img").evaluate((node) => [...node.getContext("2d").getImageData(0, 0, 1, 1).data].join());
  const light = await corner();
  await page.emulateMedia({ colorScheme: "dark" });
  await until(async () => (await corner()) !== light, "dark colours");
  await page.emulateMedia({ colorScheme: "light", forcedColors: "active" });
  assert.ok(await isDrawn(section(page).getByRole("img")));
});
