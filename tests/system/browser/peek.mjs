// The peek into a chart beside its strip, and the preview in a frame of another site.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";

import { aSet, pageTest, site, until } from "./support.mjs";

const LIST = "/?q=Harbour+Lights&creator=mossgrove";
const peek = (page) => page.locator(".peek");
const strip = (page, index = 0) => page.locator(".charts .strip").nth(index);

/** The addresses of a kind that a page requests from now on. */
function requested(page, pattern) {
  const addresses = [];
  page.on("request", (request) => pattern.test(request.url()) && addresses.push(request.url()));
  return addresses;
}

/** Whether a canvas shows more than one colour. */
const isDrawn = (canvas) =>
  canvas.evaluate((node) => {
    const { data } = node.getContext("2d").getImageData(0, 0, node.width, node.height);
    return new Set(new Uint32Array(data.buffer)).size > 1;
  });

for (const viewport of [{ width: 1280, height: 800 }, { width: 820, height: 1000 }]) {
  pageTest(`a strip shows its densest second (${viewport.width} px)`, { viewport }, async (page) => {
    await page.goto(LIST);
    const previews = requested(page, /\/preview$/);
    // The link of the row lies above it.
    await strip(page).hover({ force: true });
    await peek(page).waitFor();
    assert.match(await peek(page).textContent(), /^\d+:\d\d · \d+\/s$/);
    await until(() => isDrawn(peek(page).locator("canvas")), "notes");
    const isLevelCovered = await page.evaluate(() => {
      const { left, right, top, bottom } = document.querySelector(".peek").getBoundingClientRect();
      return [...document.querySelectorAll(".charts .level")].some((level) => {
        const at = level.getBoundingClientRect();
        return at.left < right && at.right > left && at.top < bottom && at.bottom > top;
      });
    });
    assert.equal(isLevelCovered, false);
    await page.keyboard.press("Escape");
    await peek(page).waitFor({ state: "detached" });
    await page.mouse.move(0, 0);
    await strip(page).hover({ force: true });
    await peek(page).waitFor();
    assert.equal(previews.length, 1, "one request for each chart");
    await page.mouse.move(0, 0);
    await peek(page).waitFor({ state: "detached" });
  });
}

pageTest("Escape while a preview loads keeps it closed", {}, async (page) => {
  await page.goto(LIST);
  const requests = [];
  await page.route(/\/preview$/, (route) => requests.push(route));
  await strip(page).hover({ force: true });
  await until(() => requests.length === 1, "a request");
  await page.keyboard.press("Escape");
  const shown = await page.evaluateHandle(() => {
    const nodes = [];
    new MutationObserver((changes) => nodes.push(...changes.flatMap(({ addedNodes }) => [...addedNodes]))).observe(document.body, { childList: true });
    return nodes;
  });
  const response = page.waitForResponse(/\/preview$/);
  await requests[0].continue();
  await (await response).finished();
  // The pointer is still on the first strip. The second one is shown after its preview, later than the first would be.
  await page.unroute(/\/preview$/);
  await strip(page, 1).hover({ force: true });
  await peek(page).waitFor();
  assert.equal(await shown.evaluate((nodes) => nodes.filter(({ className }) => className === "peek").length), 1);
});

pageTest("the focus shows the moment too", {}, async (page) => {
  await page.goto(LIST);
  await page.locator("#list h2 a").first().focus();
  const link = page.locator(".charts a").first();
  while (!(await link.evaluate((node) => node === document.activeElement))) await page.keyboard.press("Tab");
  await peek(page).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Shift+Tab");
  await peek(page).waitFor();
});

pageTest("a finger that holds shows the moment", { viewport: { width: 390, height: 664 }, hasTouch: true, isMobile: true }, async (page) => {
  await page.goto(LIST);
  const { x, y, width, height } = await strip(page).boundingBox();
  const session = await page.context().newCDPSession(page);
  const touch = (type, touchPoints) => session.send("Input.dispatchTouchEvent", { type, touchPoints });
  await touch("touchStart", [{ x: x + width / 2, y: y + height / 2 }]);
  await peek(page).waitFor();
  await touch("touchEnd", []);
  await peek(page).waitFor({ state: "detached" });
  assert.equal(new URL(page.url()).pathname, "/");
});

pageTest("there is no peek with reduced motion", { reducedMotion: "reduce" }, async (page) => {
  await page.clock.install();
  await page.goto(LIST);
  const requests = requested(page, /\/preview$|\/peek\./);
  await strip(page).hover({ force: true });
  await page.clock.runFor(2_000);
  assert.deepEqual(requests, []);
  assert.equal(await peek(page).count(), 0);
});

pageTest("a refused preview is asked for when the server accepts it again", { expected: [/status of 429/] }, async (page) => {
  await page.clock.install();
  await page.goto(LIST);
  const previews = requested(page, /\/preview$/);
  await page.route("**/preview", (route) => route.fulfill({ status: 429, headers: { "retry-after": "60" } }));
  const refused = page.waitForResponse(/\/preview$/);
  const hover = async (index) => {
    await strip(page, index).hover({ force: true });
    await page.clock.runFor(1_000);
  };
  const loaded = page.waitForResponse(/\/peek\./);
  await strip(page).hover({ force: true });
  await loaded;
  // The module has loaded when it takes the next move.
  await until(async () => {
    await page.mouse.move(0, 0);
    await hover(0);
    return previews.length > 0;
  }, "a request");
  await refused;
  await hover(1);
  await hover(0);
  assert.equal(previews.length, 1);
  assert.equal(await peek(page).count(), 0);
  await page.unroute("**/preview");
  await page.clock.runFor(60_000);
  await page.mouse.move(0, 0);
  await hover(0);
  await peek(page).waitFor();
  assert.equal(previews.length, 2);
});

pageTest("another site shows the preview in a frame", { expected: [/frame-ancestors/, /status of 404/] }, async (page) => {
  const { chart } = await aSet();
  const frame = (path, sandbox = "") => `<iframe src="${site.base}${path}" width="480" height="640"${sandbox}></iframe>`;
  const unknown = `/embed/charts/${"0".repeat(64)}`;
  const frames = [frame(`/embed${chart}`), frame(`/embed${chart}`, ' sandbox="allow-scripts"'), frame(unknown), frame(chart)];
  const forum = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end(frames.join("")));
  await once(forum.listen(0, "127.0.0.1"), "listening");
  // Another origin than that of the frames.
  await page.goto(`http://localhost:${forum.address().port}/`);
  const nth = (index) => page.frameLocator("iframe").nth(index);
  await nth(0).locator("#preview[data-verified=true]").waitFor();
  await until(() => isDrawn(nth(0).locator("#stage canvas").first()), "notes");
  const box = await nth(0).locator("#stage canvas").first().boundingBox();
  const { y, height } = await page.locator("iframe").first().boundingBox();
  assert.ok(box.y + box.height <= y + height && box.height > 200, "the stage fills the frame");
  assert.equal(await nth(0).getByRole("link").first().getAttribute("href"), chart);
  // A frame in a sandbox has no workers, but everything else.
  await nth(1).locator(".timeline .band").waitFor();
  assert.equal(await nth(1).locator("#preview").getAttribute("data-verified"), null);
  await nth(2).getByRole("heading", { name: "No chart is at this address" }).waitFor();
  const opened = page.context().waitForEvent("page");
  await nth(2).getByRole("link", { name: "All charts" }).click();
  assert.equal(new URL((await opened).url()).pathname, "/");
  assert.equal(await nth(3).locator("#preview").count(), 0, "the page itself is refused");
  forum.close();
});
