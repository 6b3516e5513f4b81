// Identification of files that are dropped or chosen.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after } from "node:test";

import { aSet, journey, pageTest, recorded, site, until } from "./support.mjs";

const folder = mkdtempSync(path.join(tmpdir(), "charts-"));
after(() => rmSync(folder, { recursive: true }));

const sample = path.join(site.samples, "alpha/900101 Paper Lanterns - Harbour Lights/4K Hard (mossgrove).osu");
const stepFile = path.join(site.samples, "beta/71 Kitchen Table Pack/Copper Kettle/kettle.ssc");
const quaver = path.join(site.samples, "alpha/900103 Weaver's Knot - Slow Glass/Drift.qua");

/** A file of each format. */
const known = [sample, quaver, stepFile, path.join(site.samples, "beta/72 Night Market Pack/Tea Stairs/stairs.sm")];

/** A file whose notes are not in the index. */
const unknown = path.join(folder, "unknown <b>.osu");
writeFileSync(unknown, `${readFileSync(sample, "utf8")}\n64,192,987654,1,0,0:0:0:0:\n`);
const unreadable = path.join(folder, "other mode.osu");
writeFileSync(unreadable, readFileSync(sample, "utf8").replace(/^Mode: *3/m, "Mode: 1"));

const input = (page) => page.getByLabel(/^Files/);
const songs = (page) => page.getByLabel("Your songs folder");
const result = (page) => page.locator("#identify output");
const rows = (page) => page.locator("#identify tbody tr:has(td)");
const told = (page, pattern) => until(async () => pattern.test(await result(page).textContent()), pattern);

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

journey("every page leads to the identification of files", async (user, page) => {
  for (const path of ["/", "/docs", "/nowhere"]) {
    await page.goto(path);
    await user.activate(page.getByRole("navigation", { name: "Site" }).getByRole("link", { name: "Identify a file" }));
    await page.getByRole("heading", { name: "Identify files" }).waitFor();
  }
}, { expected: [/status of 404/] });

journey("a hash is found without scripts", async (user, page) => {
  await page.goto("/identify");
  await page.locator("noscript p").waitFor();
  const { chart } = await aSet();
  await user.type(page.getByLabel(/^Note hash/), chart.split("/").at(-1).slice(0, 12));
  await user.activate(page.getByRole("button", { name: "Find" }));
  await page.waitForURL(`**${chart}`);
}, { modes: ["no script"] });

journey("files are listed with their charts", async (user, page) => {
  await page.goto("/identify");
  const requests = [];
  page.on("request", (request) => requests.push(request.postData() ?? ""));
  await choose(user, page, [...known, unknown, unreadable, path.join(site.samples, "README.md")]);
  await told(page, /^\d+ charts: \d+ in the index, 1 not in the index, 1 cannot be told\.$/);
  const texts = await rows(page).allTextContents();
  for (const file of known) assert.ok(texts.some((text) => text.startsWith(path.basename(file)) && !/ot in|annot/.test(text)), file);
  assert.ok(texts.some((text) => text.startsWith("unknown <b>.osuNot in the index")), "escaped");
  assert.ok(texts.some((text) => text.startsWith("other mode.osuCannot tell: unsupported game mode 1")));
  assert.ok(requests.every((body) => body === "" || body.startsWith('{"hashes"') || body.startsWith('{"charts"')), "no file is sent");
  const link = rows(page).first().getByRole("link").first();
  assert.match(await link.textContent(), /Harbour Lights \[4K Hard\]/);
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
  await page.goto("/identify");
  await choose(user, page, [faster]);
  await user.activate(rows(page).getByRole("link", { name: /Harbour Lights \[4K Hard\]/ }));
  await page.waitForURL(/\/charts\/[0-9a-f]{64}$/);
}, { modes: ["mouse", "keyboard"] });

pageTest("a file can be dropped anywhere", {}, async (page) => {
  await page.goto("/identify");
  const transfer = await page.evaluateHandle((text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], "dropped.osu"));
    return data;
  }, readFileSync(sample, "utf8"));
  for (const type of ["dragenter", "dragover", "drop"]) {
    await page.dispatchEvent("main", type, { dataTransfer: transfer });
  }
  await told(page, /^1 chart: 1 in the index/);
});

pageTest("a folder and the archives in it are read", {}, async (page) => {
  const pack = path.join(folder, "pack");
  mkdirSync(path.join(pack, "song"), { recursive: true });
  copyFileSync(sample, path.join(pack, "song/a.osu"));
  for (const [name, level] of [["stored.zip", "-0"], ["packed.osz", "-9"]]) {
    const archive = path.join(pack, name);
    execFileSync("python3", ["-c", ZIP, archive, level, sample, stepFile]);
  }
  execFileSync("python3", ["-c", ZIP, path.join(pack, "nested.zip"), "-9", path.join(pack, "packed.osz")]);
  writeFileSync(path.join(pack, "damaged.osz"), readFileSync(path.join(pack, "packed.osz")).subarray(0, -100));
  await page.goto("/identify");
  await songs(page).setInputFiles(pack);
  await told(page, /1 cannot be told/);
  const texts = await rows(page).allTextContents();
  const inArchive = async (name) => {
    const groups = page.locator("#identify tbody", { has: page.getByRole("rowheader", { name: `pack/${name}/` }) });
    return (await groups.locator("tr:has(td)").allTextContents()).filter((text) => !/ot in|annot/.test(text)).length;
  };
  const counts = await Promise.all(["stored.zip", "packed.osz", "nested.zip/0/é/packed.osz"].map(inArchive));
  assert.ok(counts[0] > 1 && counts.every((count) => count === counts[0]), texts.join("\n"));
  assert.ok(texts.some((text) => text.startsWith("a.osu") && /Harbour Lights/.test(text)));
  assert.ok(texts.some((text) => text.startsWith("damaged.oszCannot tell: no archive, or a damaged one")));
});

/** Writes an archive with these files, packed or not. */
const ZIP = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_STORED if sys.argv[2] == "-0" else zipfile.ZIP_DEFLATED) as archive:
    for number, name in enumerate(sys.argv[3:]):
        archive.write(name, f"{number}/é/" + name.rsplit("/", 1)[1])
    archive.comment = b"a comment"
`;

pageTest("the table is saved as CSV", { acceptDownloads: true }, async (page) => {
  await page.goto("/identify");
  const formula = path.join(folder, '=1+1 "x".osu');
  writeFileSync(formula, readFileSync(sample));
  await input(page).setInputFiles([formula, unknown]);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as CSV" }).click()]);
  assert.equal(download.suggestedFilename(), "charts.csv");
  const lines = readFileSync(await download.path(), "utf8").split("\r\n");
  assert.equal(lines[0], '"file","chart","result","artist","title","difficulty","keys","hash","rating","sources"');
  assert.match(lines[1], /^"'=1\+1 ""x""\.osu","","in the index","Paper Lanterns","Harbour Lights","4K Hard","4","[0-9a-f]{64}","\d\.\d+","Alpha set 900101"$/);
  assert.match(lines[2], /^"unknown <b>\.osu","","not in the index/);
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
    await page.goto("/identify");
    const traffic = await recorded(page);
    await input(page).setInputFiles(files);
    await told(page, /^121 charts: 1 in the index, 120 not in the index\.$/);
    filters.push(traffic.requests.filter((address) => address.includes("/api/charts/filter")).length);
  }
  assert.ok(lookedUp.length >= 2 && lookedUp.length < 20, `${lookedUp.length} hashes`);
  assert.equal(new Set(lookedUp).size, lookedUp.length / 2, "the same in both visits");
  assert.ok(filters[0] > 0);
  assert.equal(filters[1], 0, "the browser caches the filter");
  await rows(page).last().getByRole("link").first().waitFor();
});

/** A file with as many notes as most charts have. */
function usual(number) {
  const note = (_, index) => `${64 + 128 * (index % 4)},192,${index * (90 + number)},1,0,0:0:0:0:`;
  const text = `${head}[HitObjects]\n${Array.from({ length: 1_500 }, note).join("\n")}\n`;
  return { name: `${number}.osu`, mimeType: "", buffer: Buffer.from(text) };
}

/** A folder of files that the index does not know, and the samples. */
function folderOf(number, make) {
  const root = mkdtempSync(path.join(folder, "songs-"));
  cpSync(site.samples, path.join(root, "samples"), { recursive: true });
  for (let index = 0; index < number; index += 1) {
    const song = path.join(root, String(Math.floor(index / 4)));
    mkdirSync(song, { recursive: true });
    writeFileSync(path.join(song, `${index}.osu`), make(index).buffer);
  }
  return root;
}

/** Counts the files that are hashed, in `hashed`. Those after the first `limit` are hashed never. */
function countHashed(page) {
  return page.addInitScript(() => {
    [globalThis.hashed, globalThis.limit] = [0, Infinity];
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (message) {
      hashed += 1;
      if (hashed <= limit) postMessage.call(this, message);
    };
  });
}

const library = (page) => page.getByRole("region", { name: "Your library in this browser" });

pageTest("1,000 files are identified within 20 seconds, and only changed ones again", {}, async (page) => {
  await countHashed(page);
  await page.goto("/identify");
  const root = folderOf(1_000, usual);
  const read = async () => {
    const start = await page.evaluate(() => {
      globalThis.hashed = 0;
      document.querySelector("#identify output").textContent = "";
      return performance.now();
    });
    await songs(page).setInputFiles(root);
    await told(page, /^[\d,]+ charts: \d+ in the index, 1,000 not in the index/);
    return page.evaluate((start) => [performance.now() - start, hashed], start);
  };
  const [time, number] = await read();
  console.log(`1,000 files after ${time.toFixed(0)} ms`);
  assert.ok(time <= 20_000, `${time} ms`);
  assert.ok(number >= 1_000, `${number} files`);
  writeFileSync(path.join(root, "0/0.osu"), usual(5_000).buffer);
  const [again, changed] = await read();
  console.log(`again after ${again.toFixed(0)} ms`);
  assert.equal(changed, 1);
  await library(page).getByText(/[\d,]+ charts in [\d,]+ files, read/).waitFor();
});

pageTest("a reading that is cancelled continues where it was", {}, async (page) => {
  await countHashed(page);
  await page.goto("/identify");
  const root = folderOf(20, variant);
  await page.evaluate(() => (globalThis.limit = 10));
  await songs(page).setInputFiles(root);
  await until(() => page.evaluate(() => hashed > limit), "some are read");
  await page.getByRole("button", { name: "Cancel" }).click();
  await told(page, /Cancelled\.$/);
  await library(page).getByText(/not completely read/).waitFor();
  const kept = Number(/in (\d+) files/.exec(await library(page).textContent())[1]);
  assert.ok(kept > 0 && kept <= 10, `${kept} files`);
  assert.equal(await rows(page).filter({ hasText: "cancelled before it was looked up" }).count() > 0, true);
  await page.evaluate(() => ([globalThis.hashed, globalThis.limit] = [0, Infinity]));
  await songs(page).setInputFiles(root);
  await told(page, /20 not in the index/);
  const files = Number(/in (\d+) files/.exec(await library(page).textContent())[1]);
  assert.equal(await page.evaluate(() => hashed), files - kept);
});

/** A browser of which a test cannot operate the dialog gives a handle of its own files instead. */
function givesHandle(page) {
  return page.addInitScript(async (text) => {
    globalThis.showDirectoryPicker = async () => {
      const root = await navigator.storage.getDirectory();
      const handle = await root.getDirectoryHandle("Songs", { create: true });
      const file = await handle.getFileHandle("a.osu", { create: true });
      const writable = await file.createWritable();
      await writable.write(text);
      await writable.close();
      return handle;
    };
    FileSystemHandle.prototype.requestPermission = async () => "granted";
  }, readFileSync(sample, "utf8"));
}

journey("a folder is chosen once", async (user, page) => {
  await givesHandle(page);
  await page.goto("/identify");
  await user.activate(songs(page));
  await told(page, /^1 chart: 1 in the index/);
  await page.reload();
  await user.activate(library(page).getByRole("button", { name: "Read what has changed in Songs" }));
  await told(page, /^1 chart: 1 in the index/);
  await user.activate(library(page).getByRole("button", { name: "Forget everything" }));
  await told(page, /^Forgotten/);
  assert.deepEqual(await page.evaluate(() => indexedDB.databases()), []);
}, { modes: ["mouse", "keyboard"] });

journey("what a library has is marked in lists, and hidden", async (user, page) => {
  const root = folderOf(0);
  // One of three charts of Harbour Lights is missing.
  rmSync(path.join(root, "samples/alpha/900101 Paper Lanterns - Harbour Lights/4K tin owl's Expert (tin owl).osu"));
  await page.goto("/identify");
  await songs(page).setInputFiles(root);
  await told(page, /^\d+ charts: \d+ in the index/);
  await user.activate(page.getByRole("button", { name: /^Missing difficulties/ }));
  const missing = page.locator("#missing li", { hasText: "Harbour Lights" });
  await missing.getByRole("link", { name: /tin owl's Expert/ }).waitFor();
  assert.match(await missing.textContent(), /1 of 3 charts/);
  await user.activate(page.getByRole("button", { name: /^What is new/ }));
  await page.locator("#new li").getByRole("link", { name: /tin owl's Expert/ }).waitFor();
  const list = "/?q=Harbour+Lights&source=alphaSet";
  await page.goto(list);
  await page.locator(".charts .have").first().waitFor();
  const link = page.getByRole("link", { name: "4K Hard (in your library)" });
  await link.first().waitFor();
  assert.equal(await page.getByRole("link", { name: /tin owl's Expert \(in/ }).count(), 0);
  // A set with many charts has their levels alone.
  const marks = await page.evaluate(async () => {
    const set = document.createElement("li");
    const links = [document.querySelector(".charts .have a").pathname, `/charts/${"0".repeat(64)}`];
    set.innerHTML = `<ul class="charts"><li class="spectrum">${links.map((path) => `<a class="level" href="${path}">1</a>`)}</li></ul>`;
    const { mark } = await import(document.body.dataset.library);
    await mark(set);
    return [set, ...set.querySelectorAll("a")].map((node) => node.matches(".have"));
  });
  assert.deepEqual(marks, [false, true, false]);
  const count = await page.locator(".set").count();
  await user.activate(page.getByRole("checkbox", { name: "Hide what I have" }));
  const visible = await page.locator(".set:visible").count();
  assert.ok(visible > 0 && visible < count, `${visible} of ${count} sets`);
  await page.getByText(`${count - visible} of ${count} sets on this page are hidden. The count includes them.`).waitFor();
  assert.match(await page.locator("#count").textContent(), new RegExp(`^${count} sets`));
  await page.reload();
  await page.getByText("The count includes them.").waitFor();
  assert.equal(await page.locator(".set:visible").count(), visible);
  // Another list in the same page.
  await user.activate(page.getByRole("link", { name: "Title", exact: true }));
  await page.waitForURL(/sort=title/);
  await until(async () => (await page.locator(".set:visible").count()) === visible, "the same sets");
  await page.goto("/identify");
  await user.activate(page.getByRole("button", { name: "Forget everything" }));
  await told(page, /^Forgotten/);
  await page.goto(list);
  await page.locator(".set").first().waitFor();
  assert.equal(await page.evaluate(() => localStorage.getItem("library")), null);
  assert.equal(await page.locator(".set:visible").count(), count);
}, { modes: ["mouse", "keyboard"] });

/** `limitedLookups` allows two batch lookups in a minute: for the hashes of a folder, and for its variants. */
const limited = { base: site.limitedLookups, expected: [/status of 429/] };

pageTest("a folder waits where look-ups are limited", limited, async (page) => {
  await page.clock.install();
  await page.goto("/identify");
  const files = [1, 2, 3, 4, 5].map(variant);
  const done = async () => /^5 charts: 0 in the index, 5 not/.test(await result(page).textContent());
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
  // No further than the wait: requests after it have timeouts.
  await until(async () => {
    await page.clock.runFor(1_000);
    return !/continues in/.test(await result(page).textContent());
  }, "the end of the wait");
  await page.clock.resume();
  await until(done, "the rest");
  assert.deepEqual(lookUps.map((asked) => asked.length), [5, 5], "by their hashes, then by their variants");
});
