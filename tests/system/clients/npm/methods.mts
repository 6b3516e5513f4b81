// Every method over the sample library, whose types the compiler checks: node methods.mts BASE FOLDER

import assert from "node:assert/strict";

import { ChartIndex, ChartIndexError, HashFilter, hashFile, hashOfTimedNotes } from "chart-index";
import type { BatchItem, Cache, CachedResponse, Chartset, ChartsetDetail, Filters, LocalChart, Preview } from "chart-index";
import { hashFolder } from "chart-index/node";

const [base, folder] = process.argv.slice(2) as [string, string];
const kept = new Map<string, CachedResponse>();
const cache: Cache = kept;
const statuses: number[] = [];
const index = new ChartIndex(base, {
  userAgent: "tests/1.0 (me@example.org)",
  cache,
  fetch: async (url, request) => {
    const response = await fetch(url, request);
    statuses.push(response.status);
    return response;
  },
});

// Local files.
const charts: LocalChart[] = [];
for await (const chart of hashFolder(folder)) charts.push(chart);
const hashed = charts.flatMap((chart) => (chart.hash === undefined ? [] : [chart]));
assert.ok(hashed.length > 20 && hashed.some(({ variant }) => variant));
const refused = charts.find(({ reason }) => reason);
assert.match(refused?.reason ?? "", /step type/);
assert.equal((await hashFile("a.osu", new Blob(["x"])))[0]?.file, "a.osu");
const timed = hashOfTimedNotes(4, [{ startUs: 0, column: 0 }, { startUs: 9_000, column: 1, endUs: 20_000 }]);
assert.equal(timed.hash?.length, 64);

// Lookups.
const unknown = "0".repeat(64);
const { hash } = hashed[0]!;
const lookup = await index.lookup(hash, { include: ["links", "chartsets", "variants", "rating", "patterns"] });
assert.equal(lookup.status, "known");
const source = lookup.sources?.[0];
assert.equal(source?.url, `https://alpha.example/sets/${source?.ref}`);
assert.equal(lookup.chart?.title, hashed[0]?.title);
assert.deepEqual(await index.lookup(hash, { include: ["links", "chartsets", "variants", "rating", "patterns"] }), lookup);
assert.deepEqual(statuses, [200, 304]);
const items: BatchItem[] = await index.lookupMany([...hashed.map((chart) => chart.hash), unknown], { include: ["links"] });
assert.deepEqual(items.map(({ status }) => status), [...hashed.map(() => "known"), "unknown"]);
const conversions = await index.lookupMany([{ hash: unknown, variant: lookup.chart!.variant! }], { include: ["variants"] });
assert.ok(conversions[0]?.variants?.some((one) => one.hash === hash));

// Lists.
const filters: Filters = { q: "harbour", keys: [4], sort: "density", perPage: 1 };
const found: Chartset[] = [];
for await (const chartset of index.search(filters)) found.push(chartset);
const page = await index.list({ ...filters, after: "start" });
assert.deepEqual([found.length, page.total, page.items], [2, 2, found.slice(0, 1)]);
const detail: ChartsetDetail = await index.chartset(found[0]!.id, { include: ["rating"] });
const [entry] = detail.charts;
assert.deepEqual((await index.lookupMany({ ids: [entry!.alphaBeatmapId!] }))[0]?.chartHash, entry?.chart.hash);

// Files.
const preview: Preview = await index.preview(hash);
assert.equal(preview.columns.length, preview.keys);
assert.equal(new TextDecoder().decode((await index.rox(hash)).subarray(0, 3)), "ROX");
const filter = await index.hashFilter();
assert.ok(filter instanceof HashFilter && hashed.every((chart) => filter.has(chart.hash)));
assert.ok(Array.from({ length: 1_000 }, (_, number) => number.toString(16).padStart(64, "0")).filter((one) => filter.has(one)).length < 30);
assert.ok([...kept.values()].some(({ body }) => body instanceof Uint8Array));

// Other endpoints, and errors.
const changes = (await index.get("/api/changes", { limit: 1 })) as { items: unknown[] };
assert.equal(changes.items.length, 1);
await assert.rejects(index.lookup("A"), (error) => {
  assert.ok(error instanceof ChartIndexError);
  const { status, type, problem } = error;
  assert.deepEqual([status, type, problem["parameter"]], [400, "/problems/malformed-hash", "hash"]);
  return true;
});

// @ts-expect-error: no such field
await index.list({ query: "x", perPage: 1 }).then(({ nothing }) => assert.equal(nothing, undefined));
// @ts-expect-error: no such name
await assert.rejects(index.lookup(hash, { include: ["nothing"] }), { status: 400 });
// @ts-expect-error: no such sort
await assert.rejects(index.list({ sort: "loudness" }), { status: 400 });
