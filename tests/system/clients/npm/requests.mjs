// The client in front of a server that refuses, limits and fails.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { ChartIndex, ChartIndexError } from "chart-index";

const userAgent = "tests/1.0 (me@example.org)";
const hashes = (count) => Array.from({ length: count }, (_, number) => number.toString(16).padStart(64, "0"));
const json = (value, headers = {}) => ({ body: JSON.stringify(value), headers: { "Content-Type": "application/json", ...headers } });
const problem = (status, headers = {}) =>
  ({ ...json({ type: "/problems/of-a-test", title: "Refused", status, detail: "a reason", parameter: "q" }, headers), status });
const unknown = (chartHash) => ({ chartHash, status: "unknown", ttlMs: 300_000 });

/**
 * A test with a server that responds to each request, and a client whose waits are recorded instead of waited
 * for. A response that is undefined closes the connection.
 */
function serverTest(name, respond, run, options = {}) {
  test(name, async () => {
    const [requests, waits] = [[], []];
    const server = createServer(async (request, response) => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks)) : undefined;
      const received = { time: performance.now(), method: request.method, path: request.url, headers: request.headers, body };
      requests.push(received);
      const { status = 200, headers = {}, body: sent, isCut } = respond(received, requests.length) ?? { isCut: true };
      if (isCut && !sent) return request.socket.destroy();
      response.writeHead(status, headers);
      if (!isCut) return response.end(sent);
      response.write(sent);
      return setTimeout(() => request.socket.destroy(), 20);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const base = `http://127.0.0.1:${server.address().port}`;
    const wait = async (ms, { status }) => waits.push([Math.round(ms), status]);
    try {
      await run(new ChartIndex(`${base}/`, { userAgent, wait, ...options }), requests, waits, base);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
}

/** Responds with these to the first requests, and with the last of them to all others. */
const inTurn = (...responses) => (_, number) => responses[Math.min(number, responses.length) - 1];

test("a program has to name itself, and an index its address", () => {
  for (const options of [undefined, {}, { userAgent: " " }]) {
    assert.throws(() => new ChartIndex("https://charts.example", options), /userAgent is required/);
  }
  for (const base of ["charts.example", "", "ftp://charts.example"]) {
    assert.throws(() => new ChartIndex(base, { userAgent }), TypeError, base);
  }
  for (const base of ["https://me@charts.example", "https://me:secret@charts.example"]) {
    const isSafe = (error) => error instanceof TypeError && /user name/.test(error.message) && !error.message.includes("secret");
    assert.throws(() => new ChartIndex(base, { userAgent }), isSafe);
  }
  for (const other of ["a\nb", "\u97f3"]) {
    assert.throws(() => new ChartIndex("https://charts.example", { userAgent: other }), TypeError, other);
  }
});

serverTest("requests name the program, below the address", () => json({ items: [] }), async (_, requests, __, base) => {
  for (const address of [base, `${base}/`, `${base}/a/b//`, new URL(`${base}/a?x=1#y`)]) {
    await new ChartIndex(address, { userAgent }).list({ q: "a b", keys: [4, 7], sort: undefined });
  }
  const query = "/api/chartsets?q=a+b&keys=4%2C7";
  assert.deepEqual(requests.map(({ path }) => path), [query, query, `/a/b${query}`, `/a${query}`]);
  assert.ok(requests.every(({ headers }) => headers["user-agent"] === userAgent));
});

test("a browser names itself, and caches responses", async () => {
  const { navigator } = globalThis;
  const set = (value) => Object.defineProperty(globalThis, "navigator", { value, configurable: true });
  set({ userAgent: "Mozilla/5.0" });
  try {
    const sent = [];
    const fetch = async (url, { headers }) => sent.push(headers) && new Response("{}", { headers: { ETag: '"a"' } });
    const index = new ChartIndex("https://charts.example", { fetch });
    for (let times = 0; times < 2; times += 1) await index.lookup(hashes(1)[0]);
    assert.deepEqual(sent, [{}, {}]);
  } finally {
    set(navigator);
  }
});

// --- Conditional requests ---

const tagged = ({ path, headers }) => {
  const tag = `"${path.length}"`;
  return headers["if-none-match"] === tag ? { status: 304, headers: { ETag: tag } } : json({ path }, { ETag: tag });
};

serverTest("what has not changed is not sent again", tagged, async (index, requests) => {
  const [hash] = hashes(1);
  const first = await index.lookup(hash, { include: ["rating", "links"] });
  first.path = "changed by the caller";
  const again = await index.lookup(hash, { include: ["rating", "links"] });
  assert.equal(again.path, `/api/charts/${hash}?include=rating%2Clinks`);
  await index.lookup(hash);
  assert.deepEqual(requests.map(({ headers }) => headers["if-none-match"]), [undefined, '"99"', undefined]);
});

const large = ({ path, headers }) =>
  headers["if-none-match"] ? { status: 304 } : json({ path, text: "a".repeat(/z$/.test(path) ? 2 ** 24 : 2 ** 22) }, { ETag: '"a"' });
serverTest("the cache has the newest responses, up to 32 MiB", large, async (index, requests) => {
  const areCached = async (...hashes) => {
    const start = requests.length;
    for (const hash of hashes) assert.match((await index.lookup(hash)).path, new RegExp(`/${hash}$`));
    return requests.slice(start).map(({ headers }) => Boolean(headers["if-none-match"]));
  };
  // Each has 8 MiB in memory.
  await areCached("a", "b", "c");
  assert.deepEqual(await areCached("a", "b", "c"), [true, true, true]);
  assert.deepEqual(await areCached("d", "c", "b", "a"), [false, true, true, false]);
  // What is too large itself is not cached.
  assert.deepEqual(await areCached("z", "z", "a"), [false, false, true]);
});

serverTest("what is no JSON is not cached", inTurn({ body: "<!doctype html>", headers: { ETag: '"a"' } }, json({})), async (index, requests) => {
  await assert.rejects(index.lookup("a"), { name: "ChartIndexError" });
  assert.deepEqual(await index.lookup("a"), {});
  assert.equal(requests[1].headers["if-none-match"], undefined);
});

serverTest("bytes and texts are cached each", tagged, async (index, requests) => {
  const path = "/api/charts/a/rox";
  for (let times = 0; times < 2; times += 1) {
    assert.deepEqual(await index.get(path), { path });
    assert.equal(new TextDecoder().decode(await index.rox("a")), JSON.stringify({ path }));
  }
  assert.deepEqual(requests.map(({ headers }) => Boolean(headers["if-none-match"])), [false, false, true, true]);
});

serverTest("a path begins with a slash", () => json({}), async (index, requests) => {
  for (const path of ["@other.example/", ".other.example/", "0/", ""]) await assert.rejects(index.get(path), TypeError);
  assert.equal(requests.length, 0);
});

const own = new Map();
serverTest("a cache of the caller is used", tagged, async (index, requests, _, base) => {
  const rox = await index.rox("a");
  rox.fill(0);
  await new ChartIndex(base, { userAgent, cache: own }).rox("a");
  const cached = own.get(`bytes ${base}/api/charts/a/rox`);
  assert.deepEqual([cached.etag, new TextDecoder().decode(cached.body)], ['"17"', '{"path":"/api/charts/a/rox"}']);
  assert.deepEqual(requests.map(({ headers }) => headers["if-none-match"]), [undefined, '"17"']);
}, { cache: own });

// --- Waiting ---

const DATE = { Date: "Sun, 06 Nov 1994 08:49:37 GMT" };
for (const [value, expected] of [
  ["2", 2_000],
  ["Sun, 06 Nov 1994 08:49:40 GMT", 3_000],
  ["Sunday, 06-Nov-94 08:50:37 GMT", 60_000],
  ["Sun Nov  6 08:49:41 1994", 4_000],
  // What says nothing about when to come back.
  ["0", undefined],
  ["Sun, 06 Nov 1994 08:49:30 GMT", undefined],
  ["-5", undefined],
  ["soon", undefined],
  ["Sooner or later", undefined],
  [undefined, undefined],
]) {
  const retryAfter = value === undefined ? {} : { "Retry-After": value };
  const refused = problem(429, { ...DATE, ...retryAfter });
  serverTest(`Retry-After: ${value}`, inTurn(refused, json({})), async (index, requests, waits) => {
    await index.preview("a");
    assert.equal(requests.length, 2);
    const [[ms, status]] = waits;
    assert.equal(status, 429);
    if (expected) assert.equal(ms, expected);
    else assert.ok(ms >= 500 && ms <= 1_000, `${ms} ms`);
  });
}

serverTest("attempts come more and more rarely, and end", inTurn(problem(503)), async (index, requests, waits) => {
  await assert.rejects(index.chartset("a"), (error) => {
    assert.ok(error instanceof ChartIndexError && error instanceof Error);
    const { name, status, type, title, detail } = error;
    assert.deepEqual([name, status, type, title, detail], ["ChartIndexError", 503, "/problems/of-a-test", "Refused", "a reason"]);
    assert.equal(error.problem.parameter, "q");
    assert.match(error.message, /\/api\/chartsets\/a: 503 Refused \(a reason\)$/);
    return true;
  });
  assert.equal(requests.length, 6);
  for (const [index, [ms]] of waits.entries()) {
    assert.ok(ms >= 500 * 2 ** index && ms <= 1_000 * 2 ** index, `${ms} ms before attempt ${index + 2}`);
  }
});

serverTest("a number of attempts", inTurn(problem(429)), async (index, requests) => {
  await assert.rejects(index.lookup("a"), { status: 429 });
  assert.equal(requests.length, 2);
}, { maxAttempts: 2 });

serverTest("a long wait is left to the caller", inTurn(problem(429, { "Retry-After": "7" })), async (index, requests, waits) => {
  await assert.rejects(index.lookup("a"), { status: 429, retryAfterMs: 7_000 });
  assert.deepEqual([requests.length, waits], [2, [[7_000, 429]]]);
}, { maxWaitMs: 10_000 });

const none = Object.fromEntries(["cache", "fetch", "maxAttempts", "maxWaitMs"].map((name) => [name, undefined]));
serverTest("options that are undefined are those by default", tagged, async (index, requests) => {
  for (let times = 0; times < 2; times += 1) await index.lookup("a");
  assert.ok(requests[1].headers["if-none-match"]);
}, none);
serverTest("limits that are undefined are those by default", inTurn(problem(503)), async (index, requests) => {
  await assert.rejects(index.lookup("a"), { status: 503 });
  assert.equal(requests.length, 6);
}, none);
test("a wait that is undefined is that by default", async () => {
  const responses = [new Response("", { status: 503, headers: { "Retry-After": "1" } }), new Response("{}")];
  const start = performance.now();
  await new ChartIndex("https://charts.example", { userAgent, wait: undefined, fetch: async () => responses.shift() }).lookup("a");
  assert.ok(performance.now() - start >= 990);
});

serverTest("a wait is no longer than timers are", inTurn(problem(503, { "Retry-After": "9999999999" }), json({})), async (index, _, waits) => {
  await index.lookup("a");
  assert.deepEqual(waits, [[2 ** 31 - 1, 503]]);
}, { maxWaitMs: Infinity });

/** Runs with a clock on which 90 seconds are 50 milliseconds. */
async function withFastTimeout(run) {
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (callback, ms, ...values) => setTimeout(callback, ms === 90_000 ? 50 : ms, ...values);
  try {
    await run();
  } finally {
    globalThis.setTimeout = setTimeout;
  }
}

/** A `fetch` without a response, until it is aborted. */
const silent = (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
test("an attempt ends without a response", async () => {
  const waits = [];
  const options = { userAgent, fetch: silent, maxAttempts: 2, wait: async (_, { status }) => waits.push(status) };
  const index = new ChartIndex("https://charts.example", options);
  const expected = { name: "ChartIndexError", status: 0, title: "No response", detail: "no response within 90 seconds" };
  await withFastTimeout(() => assert.rejects(index.lookup("a"), expected));
  assert.deepEqual(waits, [0]);
});

const chunks = () => new ReadableStream({
  async start(controller) {
    controller.enqueue(new TextEncoder().encode("{"));
    await new Promise((resolve) => setTimeout(resolve, 150));
    controller.enqueue(new TextEncoder().encode("}"));
    controller.close();
  },
});
test("a body may take longer", async () => {
  const index = new ChartIndex("https://charts.example", { userAgent, fetch: async () => new Response(chunks()) });
  await withFastTimeout(async () => assert.deepEqual(await index.lookup("a"), {}));
});

test("a request can be aborted", async () => {
  const controller = new AbortController();
  const index = new ChartIndex("https://charts.example", { userAgent, fetch: silent });
  const lookup = index.lookup("a", { signal: controller.signal });
  setImmediate(() => controller.abort(new Error("no longer")));
  await assert.rejects(lookup, /no longer/);
  await assert.rejects(index.lookup("a", { signal: controller.signal }), /no longer/);
});

const redirect = (status) => ({ status, headers: { Location: "/other" } });
for (const status of [301, 307]) {
  serverTest(`a redirected batch: ${status}`, inTurn(redirect(status), json({ items: [] })), async (index, requests) => {
    await assert.rejects(index.lookupMany(hashes(1)), { name: "ChartIndexError", status });
    assert.equal(requests.length, 1);
  });
}

serverTest("a proxy without the index is waited for", inTurn({ status: 502, body: "<h1>" }, { status: 504 }, json({})), async (index, requests) => {
  await index.lookup("a");
  assert.equal(requests.length, 3);
});

const cut = { ...json({ status: "unknown" }, { "Content-Length": "100" }), isCut: true };
serverTest("lost connections are tried again", inTurn(undefined, cut, json({ status: "known" })), async (index, _, waits) => {
  assert.deepEqual(await index.lookup("a"), { status: "known" });
  assert.deepEqual(waits.map(([, status]) => status), [0, 0]);
});

test("an index that is not there", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  const index = new ChartIndex(`http://127.0.0.1:${port}`, { userAgent, wait: async () => {} });
  await assert.rejects(index.lookup("a"), { name: "ChartIndexError", status: 0, detail: /ECONNREFUSED/ });
});

for (const [response, expected] of [
  [problem(400), { status: 400, detail: "a reason" }],
  [problem(404), { status: 404 }],
  [{ status: 500, body: "<h1>500</h1>" }, { status: 500, type: "about:blank", title: "Internal Server Error" }],
  [{ status: 403, body: "null" }, { status: 403 }],
  [{ body: "<!doctype html>" }, { status: 0, title: "The response is no JSON" }],
  [{ body: "null" }, { status: 0, title: "The response is no JSON object" }],
  [{ body: "7" }, { status: 0, title: "The response is no JSON object" }],
  [{ status: 304 }, { status: 304, title: "Not Modified" }],
]) {
  serverTest(`no second attempt: ${response.status ?? response.body}`, inTurn(response), async (index, requests) => {
    await assert.rejects(index.lookup("a"), { name: "ChartIndexError", ...expected });
    assert.equal(requests.length, 1);
  });
}

/** With the real clock: seconds, a date, and none. */
const inTwoSeconds = () => new Date(Date.now() + 2_000).toUTCString();
const dated = ({ path }, number) =>
  [problem(429, { "Retry-After": "1" }), problem(429, { "Retry-After": inTwoSeconds() }), problem(503)][number - 1] ?? json({ path });
serverTest("the client waits", dated, async (_, requests, __, base) => {
  await new ChartIndex(base, { userAgent }).lookup("a");
  const times = requests.map(({ time }) => time);
  const waits = times.slice(1).map((time, index) => time - times[index]);
  assert.equal(waits.length, 3);
  // A date is in whole seconds, and timers may be a millisecond early.
  for (const [index, least] of [990, 990, 1_990].entries()) assert.ok(waits[index] >= least, `${waits} ms`);
});

serverTest("a wait can be aborted", inTurn(problem(503, { "Retry-After": "60" })), async (_, requests, __, base) => {
  const controller = new AbortController();
  const lookup = new ChartIndex(base, { userAgent }).lookup("a", { signal: controller.signal });
  lookup.catch(() => {});
  while (requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  controller.abort(new Error("no longer"));
  await assert.rejects(lookup, /no longer/);
  assert.equal(requests.length, 1);
});

// --- Batches ---

const asked = ({ body }) => body.hashes ?? body.charts;
const answers = (request) => json({ items: asked(request).map((one) => unknown(one.hash ?? one)) });

serverTest("any number of charts is looked up, in their order", answers, async (index, requests) => {
  const all = [...hashes(2_100), ...hashes(2)];
  const items = await index.lookupMany(all);
  assert.deepEqual(items.map(({ chartHash }) => chartHash), all);
  assert.deepEqual(requests.map((request) => asked(request).length), [1_000, 1_000, 102]);
  assert.equal(requests[0].path, "/api/charts/lookup");
  for (const none of [[], {}, { md5: [] }]) assert.deepEqual(await index.lookupMany(none), []);
  for (const other of ["a", undefined, { hashes: ["a"] }]) await assert.rejects(index.lookupMany(other), TypeError);
  assert.equal(requests.length, 3);
});

for (const [include, expected] of [
  [["rating", "links"], 1_000],
  [["variants"], 100],
  [["chartsets", "links"], 100],
  [["variants", "chartsets"], 25],
  ["links,variants,chartsets", 25],
]) {
  serverTest(`a batch with ${include}`, answers, async (index, requests) => {
    await index.lookupMany(hashes(expected + 1), { include });
    assert.deepEqual(requests.map((request) => asked(request).length), [expected, 1]);
    assert.equal(requests[0].path, `/api/charts/lookup?include=${String(include).replaceAll(",", "%2C")}`);
  });
}

serverTest("charts have other identifiers", answers, async (index, requests) => {
  const [hash] = hashes(1);
  await index.lookupMany({ md5: ["a", "b"], ids: [1] });
  await index.lookupMany(new Set([hash, { hash }, { md5: "c" }, { alphaBeatmapId: 0 }]));
  assert.deepEqual(requests.map(({ body }) => body), [
    { charts: [{ md5: "a" }, { md5: "b" }, { alphaBeatmapId: 1 }] },
    { charts: [{ hash }, { hash }, { md5: "c" }, { alphaBeatmapId: 0 }] },
  ]);
});

serverTest("of local charts, only what identifies them is sent", answers, async (index, requests) => {
  const [hash, variant] = hashes(2);
  const charts = [{ file: "/home/me/a.osu", hash, keys: 4, variant, title: "a", artist: "b", creator: "c", difficulty: "d" }];
  await index.lookupMany(charts);
  await index.lookupMany([...charts, hash], { include: ["variants"] });
  const bodies = [{ hashes: [hash] }, { charts: [{ hash, variant }, { hash }] }];
  assert.deepEqual(requests.map(({ body }) => body), bodies);
  for (const none of [{ file: "a.osu", reason: "no notes" }, "", undefined]) {
    await assert.rejects(index.lookupMany([hash, none]), /no hash, md5 or alphaBeatmapId/);
  }
  assert.equal(requests.length, 2);
});

const slow = (request) => (asked(request).length > 300 ? problem(408, { Connection: "close" }) : answers(request));
serverTest("a link that is too slow gets smaller batches", slow, async (index, requests, waits) => {
  const all = hashes(600);
  assert.deepEqual((await index.lookupMany(all)).map(({ chartHash }) => chartHash), all);
  await index.lookupMany(all);
  assert.deepEqual(requests.map((request) => asked(request).length), [600, 300, 300, 300, 300]);
  assert.deepEqual(waits, []);
});

test("batches never become larger again", async () => {
  const sizes = [];
  let release;
  const halved = new Promise((resolve) => (release = resolve));
  const fetch = async (_, { body }) => {
    const { hashes } = JSON.parse(body);
    sizes.push(hashes.length);
    // The larger batch is given up after the smaller one.
    if (hashes.length === 1_000) await halved;
    if (hashes.length === 2) release();
    return hashes.length > 2 ? new Response("", { status: 408 }) : new Response(JSON.stringify({ items: hashes.map(unknown) }));
  };
  const index = new ChartIndex("https://charts.example", { userAgent, fetch });
  await Promise.all([index.lookupMany(hashes(1_000)), index.lookupMany(hashes(4))]);
  assert.deepEqual([sizes.slice(0, 2), Math.max(...sizes.slice(2))], [[1_000, 4], 2]);
});

serverTest("a chart that is too much for the link", inTurn(problem(408)), async (index, requests) => {
  await assert.rejects(index.lookupMany(hashes(3)), { status: 408 });
  assert.deepEqual(requests.map((request) => asked(request).length), [3, 2, 1]);
});

serverTest("fewer items than charts", () => json({ items: [] }), async (index) => {
  await assert.rejects(index.lookupMany(hashes(2)), { name: "ChartIndexError", title: "The response does not have 2 items" });
});

for (const [name, body] of [
  ["no list", { items: { length: 2 } }],
  ["no object", null],
]) {
  serverTest(`a batch whose response has ${name}`, () => json(body), async (index) => {
    await assert.rejects(index.lookupMany(hashes(2)), { name: "ChartIndexError", status: 0 });
  });
}

const [first, second] = hashes(2).map(unknown);
for (const items of [[second, first], [first, null], [first, {}], [first, { ...second, chartHash: "A" }]]) {
  serverTest(`items of other charts: ${JSON.stringify(items)}`, () => json({ items }), async (index) => {
    const expected = { name: "ChartIndexError", title: "The items of the response are not those of the charts" };
    await assert.rejects(index.lookupMany(hashes(2)), expected);
  });
}

serverTest("items of charts without a hash", () => json({ items: [{ status: "unknown" }] }), async (index) => {
  assert.equal((await index.lookupMany({ ids: [1] })).length, 1);
});

// --- Lists and filters ---

for (const body of [{}, { items: {} }, null]) {
  serverTest(`a list without items: ${JSON.stringify(body)}`, () => json(body), async (index) => {
    await assert.rejects(index.list(), { name: "ChartIndexError", status: 0 });
    await assert.rejects(index.search().next(), { name: "ChartIndexError", status: 0 });
  });
}

const pages = ({ path }) => {
  const after = new URL(path, "http://localhost").searchParams.get("after");
  const next = { start: "b", b: "c" }[after];
  return json({ items: [{ id: after }, { id: `${after}2` }], ...(next && { nextAfter: next }) });
};
serverTest("a list is read while it is used", pages, async (index, requests) => {
  const ids = [];
  for await (const { id } of index.search({ q: "x", keys: [4, 7] })) ids.push(id);
  assert.deepEqual(ids, ["start", "start2", "b", "b2", "c", "c2"]);
  assert.equal(requests[1].path, "/api/chartsets?perPage=60&q=x&keys=4%2C7&after=b");
  for await (const { id } of index.search({ perPage: 2, after: "b" })) if (id === "b2") break;
  assert.deepEqual(requests.slice(3).map(({ path }) => path), ["/api/chartsets?perPage=2&after=b"]);
});

serverTest("a list may end with null", () => json({ items: [{ id: "a" }], nextAfter: null }), async (index, requests) => {
  for await (const { id } of index.search({ after: null })) assert.equal(id, "a");
  assert.deepEqual(requests.map(({ path }) => path), ["/api/chartsets?perPage=60&after=start"]);
});

serverTest("a list that does not end", () => json({ items: [{ id: "a" }], nextAfter: "b" }), async (index, requests) => {
  const ids = [];
  const read = async () => {
    for await (const { id } of index.search()) ids.push(id);
  };
  await assert.rejects(read, { name: "ChartIndexError", title: "The next page is the same again" });
  assert.deepEqual([ids, requests.length], [["a", "a"], 2]);
});

serverTest("an index without a hash filter", inTurn(problem(404)), async (index) => {
  assert.equal(await index.hashFilter(), undefined);
});

for (const bytes of [Buffer.alloc(60), Buffer.from("CIHF"), Buffer.from(`CIHF${"\x01\0\0\0".repeat(12)}`)]) {
  serverTest(`a damaged hash filter of ${bytes.length} bytes`, () => ({ body: bytes }), async (index) => {
    await assert.rejects(index.hashFilter(), { name: "ChartIndexError", title: /^The response is no hash filter: / });
  });
}
