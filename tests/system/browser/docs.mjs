// The pages for authors of clients: languages, copies, requests that are sent, and the search.

import assert from "node:assert/strict";

import { journey, pageTest } from "./support.mjs";

const LOOKUP = "/docs/api/chart-lookup";

journey("the request is shown in the language of a link", async (user, page) => {
  await page.goto(LOOKUP);
  await page.getByText("curl --user-agent").waitFor();
  await user.activate(page.getByRole("navigation", { name: "Languages" }).getByRole("link", { name: "Python" }));
  await page.getByText("from urllib.request").waitFor();
  assert.equal(await page.getByText("curl --user-agent").isVisible(), false);
});

journey("the documentation is searched", async (user, page) => {
  await page.goto("/docs");
  await user.type(page.getByLabel("Search the documentation"), "binary fuse");
  await page.keyboard.press("Enter");
  await user.activate(page.locator(".found").getByRole("link", { name: "Hash filter format" }));
  await page.waitForURL("**/docs/hash-filter");
});

journey("a request is sent and its response shown", async (user, page) => {
  await page.goto(LOOKUP);
  await user.activate(page.getByRole("link", { name: "Send this request" }));
  const response = page.locator(".operation .response");
  await response.filter({ hasText: '"status": "known"' }).waitFor();
  assert.match(await response.textContent(), /^200 OK\ncontent-type: application\/json\n/);
  assert.ok(page.url().endsWith(LOOKUP));
}, { modes: ["mouse", "keyboard"] });

journey("code is copied", async (user, page) => {
  await page.goto(LOOKUP);
  await user.activate(page.locator("#in-curl").getByRole("button", { name: "Copy" }));
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^curl --user-agent [^]*\/api\/charts\/[0-9a-f]{64}'$/);
}, { modes: ["mouse", "keyboard"] });

pageTest("links to sections of the reference as one page lead to their pages", {}, async (page) => {
  await page.goto("/docs#rate-limits");
  await page.waitForURL("**/docs/api/rate-limits");
});
