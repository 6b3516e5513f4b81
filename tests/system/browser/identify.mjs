// "Which chart is this?": files that are dropped or chosen on the list page.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after } from "node:test";

import { journey, pageTest, recorded, site, until } from "./support.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "charts-"));
after(() => rmSync(folder, { recursive: true }));

const sample = path.join(site.samples, "alpha/900101 Paper Lanterns - Harbour Lights/4K Hard (mossgrove).osu");
const quaver = path.join(site.samples, "alpha/900103 Weaver's Knot - Slow Glass/Drift.qua");

/** A file whose notes are not in the index. */
const unknown = path.join(folder, "unknown <b>.osu");
writeFileSync(unknown, `${readFileSync(sample, "utf8")}\n64,192,987654,1,0,0:0:0:0:\n`);
const unreadable = path.join(folder, "other mode.osu");
writeFileSync(unreadable, readFileSync(sample, "utf8").replace(/^Mode: *3/m, "Mode: 1"));

/** A list with few links before the field, which the keyboard reaches by Tab. */
const LIST = "/?perPage=2";

const input = (page) => page.locator("#chart-file");
const result = (page) => page.locator("#which-chart-result");

/** Chooses files as the dialog of the browser does, which a script cannot operate. */
async function choose(user, page, files) {
  if (user.mode === "keyboard") {
    // The dialog is intercepted as long as someone listens.
    page.on("filechooser", () => {});
    await user.moveTo(input(page));
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.keyboard.press("Enter")]);
    await chooser.setFiles(files);
  } else {
    await input(page).setInputFiles(files);
  }
}

journey("a known file opens its page", async (user, page) => {
  for (const file of [sample, quaver]) {
    await page.goto(LIST);
    const requests = [];
    page.on("request", (request) => requests.push(request.postData()));
    await choose(user, page, [file]);
    await page.waitForURL(/\/charts\/[0-9a-f]{64}$/);
    assert.ok(requests.every((body) => body === null), "nothing is uploaded");
  }
}, { modes: ["mouse", "keyboard"] });

journey("other files are listed with their names", async (user, page) => {
  await page.goto(LIST);
  await choose(user, page, [unknown]);
  await until(async () => /not in the index/.test(await result(page).textContent()), "a result");
  assert.match(await result(page).textContent(), /unknown <b>\.osu/);
  await choose(user, page, [unreadable]);
  await until(async () => /cannot tell/.test(await result(page).textContent()), "a reason");
  await choose(user, page, [sample, unknown, unreadable, path.join(site.samples, "README.md")]);
  await until(async () => /^3 files:/.test(await result(page).textContent()), "a summary");
  const counts = "1 in the index, 1 not in the index, 1 cannot be told, 1 other file ignored";
  assert.ok((await result(page).textContent()).includes(counts));
  const items = page.locator("#which-chart ul li");
  assert.equal(await items.count(), 3);
  const link = items.first().getByRole("link");
  assert.match(await link.textContent(), /Harbour Lights/);
  await user.activate(link);
  await page.waitForURL(/\/charts\/[0-9a-f]{64}$/);
}, { modes: ["mouse", "keyboard"] });

/** The sample at 1.1 times its rate, as converters round it. */
const faster = path.join(folder, "faster.osu");
const [head, notes] = readFileSync(sample, "utf8").split("[HitObjects]");
const rate = (time) => Math.round(Number(time) / 1.1);
const rated = notes.replace(/^(\d+,\d+),(\d+),(\d+,\d+),(\d+)(:.*)?$/gm, (_, place, start, kind, end, rest = "") =>
  `${place},${rate(start)},${kind},${rate(end)}${rest}`);
writeFileSync(faster, `${head}[HitObjects]${rated}`);

journey("a converted file leads to the chart that it was made from", async (user, page) => {
  for (const files of [[faster], [faster, unreadable]]) {
    await page.goto(LIST);
    await choose(user, page, files);
    const link = page.locator("#which-chart").getByRole("link", { name: /Harbour Lights \[4K Hard\]/ });
    await link.waitFor();
    await user.activate(link);
    await page.waitForURL(/\/charts\/[0-9a-f]{64}$/);
  }
}, { modes: ["mouse", "keyboard"] });

pageTest("a file can be dropped anywhere", {}, async (page) => {
  await page.goto(LIST);
  const transfer = await page.evaluateHandle((text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], "dropped.osu"));
    return data;
  }, readFileSync(sample, "utf8"));
  for (const type of ["dragenter", "dragover", "drop"]) {
    await page.dispatchEvent("main", type, { dataTransfer: transfer });
  }
  await page.waitForURL(/\/charts\/[0-9a-f]{64}$/);
});

/** A file with the notes of the sample and one more. */
function variant(number) {
  const notes = `[HitObjects]\n64,192,${900_000 + number},1,0,0:0:0:0:`;
  const buffer = Buffer.from(readFileSync(sample, "utf8").replace("[HitObjects]", notes));
  return { name: `${number}.osu`, mimeType: "", buffer };
}

pageTest("of many files only those that may be known are looked up", {}, async (page) => {
  const lookedUp = [];
  page.on("request", (request) => {
    if (request.method() === "POST") lookedUp.push(...(JSON.parse(request.postData()).hashes ?? []));
  });
  const files = Array.from({ length: 120 }, (_, number) => variant(number));
  files.push({ name: "sample.osu", mimeType: "", buffer: readFileSync(sample) });
  const filters = [];
  for (let visit = 0; visit < 2; visit += 1) {
    await page.goto(LIST);
    const traffic = await recorded(page);
    await input(page).setInputFiles(files);
    const counts = /^121 files: 1 in the index, 120 not in the index\.$/;
    await until(async () => counts.test(await result(page).textContent()), "a summary");
    filters.push(traffic.requests.filter((address) => address.includes("/api/charts/filter")).length);
  }
  assert.ok(lookedUp.length >= 2 && lookedUp.length < 20, `${lookedUp.length} hashes`);
  assert.equal(new Set(lookedUp).size, lookedUp.length / 2, "the same in both visits");
  assert.ok(filters[0] > 0);
  assert.equal(filters[1], 0, "the browser caches the filter");
  await page.locator("#which-chart ul li").last().getByRole("link").waitFor();
});

/** `limitedLookups` allows two batch lookups in a minute: for the hashes of a folder, and for its variants. */
const limited = { base: site.limitedLookups, expected: [/status of 429/] };

pageTest("a folder waits where look-ups are limited", limited, async (page) => {
  await page.clock.install();
  await page.goto(LIST);
  const files = [1, 2, 3, 4, 5].map(variant);
  const done = async () => /^5 files: 0 in the index, 5 not/.test(await result(page).textContent());
  await input(page).setInputFiles(files);
  await until(done, "the first folder");
  await input(page).setInputFiles(files);
  await until(async () => /continues in \d+ seconds/.test(await result(page).textContent()), "a countdown");
  const lookUps = [];
  await page.route("**/api/charts/lookup*", (route) => {
    const { hashes, charts } = JSON.parse(route.request().postData());
    const asked = hashes ?? charts.map(({ hash }) => hash);
    lookUps.push(asked);
    return route.fulfill({ json: { items: asked.map((chartHash) => ({ chartHash, status: "unknown" })) } });
  });
  assert.equal(lookUps.length, 0, "nothing is asked while it waits");
  await page.clock.runFor(61_000);
  await until(done, "the rest");
  assert.deepEqual(lookUps.map((asked) => asked.length), [5, 5], "by their hashes, then by their variants");
});
