// Calls every operation of an index with openapi-fetch and the types of openapi-typescript, and prints their ids.
import createClient from "openapi-fetch";
import type { paths } from "./schema";
import { BASE, LIMITED, CHARTSET, EXPORT, HASH, UNKNOWN, VARIANT, called, check, startsWith } from "./expected";

const client = createClient<paths>({ baseUrl: BASE });
const limited = createClient<paths>({ baseUrl: LIMITED });
const chart = { path: { hash: HASH } };
const ofExport = { path: { name: EXPORT } };
// The type of a body in `format: binary` is a string; `parseAs` decides what it is.
const bytes = { parseAs: "arrayBuffer" } as const;

async function charts() {
  const query = { include: ["variants" as const, "links" as const] };
  const { data: lookup } = await client.GET("/api/charts/{hash}", { params: { ...chart, query } });
  check(lookup?.status === "known" && lookup.chart.notes === 36 && lookup.sources[0].url !== undefined);
  called("lookUpChart");
  const { data: unknown } = await client.GET("/api/charts/{hash}", { params: { path: { hash: UNKNOWN } } });
  check(unknown?.status === "unknown" && unknown.chartHash === UNKNOWN);
  const body = { hashes: [HASH], charts: [{ md5: "0".repeat(32) }] };
  const { data: batch } = await client.POST("/api/charts/lookup", { body });
  const [known, other] = batch?.items ?? [];
  check(known.status === "known" && known.chart.hash === HASH);
  check(other.status === "unknown" && other.md5 === "0".repeat(32));
  called("lookUpCharts");
  const { data: preview } = await client.GET("/api/charts/{hash}/preview", { params: chart });
  check(preview?.keys === 4);
  called("getChartPreview");
  const path = { variant: VARIANT };
  const { data: variants } = await client.GET("/api/variants/{variant}", { params: { path } });
  check(variants?.items[0].hash === HASH);
  called("listVariantCharts");
}

async function chartsets() {
  const query = { keys: [4, 7], include: ["rating" as const, "updated" as const], after: "start", perPage: 1 };
  const { data: list } = await client.GET("/api/chartsets", { params: { query } });
  check(list?.items.length === 1 && list.nextAfter !== undefined && list.items[0].updatedAtMs !== undefined);
  called("listChartsets");
  const { data: set } = await client.GET("/api/chartsets/{id}", { params: { path: { id: CHARTSET } } });
  check(set?.charts.some((entry) => entry.chart.hash === HASH));
  called("getChartset");
  const { data: random } = await client.GET("/api/random", { params: { query: { query: "keys=7" } } });
  check(random?.charts.length !== 0 && random?.keys.includes(7));
  called("chooseChartset");
  const manual = { redirect: "manual" } as const;
  const setSource = await client.GET("/go/chartset/{id}", { params: { path: { id: CHARTSET } }, ...manual });
  check(setSource.response.status === 302 && setSource.response.headers.has("location"));
  called("goToSource");
  const source = await client.GET("/go/chart/{hash}", { params: chart, ...manual });
  check(source.response.status === 302 && source.response.headers.has("location"));
  called("goToChartSource");
}

async function bulk() {
  const { data: changes } = await client.GET("/api/changes", { params: { query: { limit: 1000 } } });
  check(changes?.hasMore === false && changes.items.some((change) => change.chartset !== undefined));
  called("listChanges");
  const { data: newest } = await client.GET("/api/exports/latest");
  const { data: manifest } = await client.GET("/api/exports/{name}/manifest.json", { params: ofExport });
  check(newest !== undefined && newest.lineage === manifest?.lineage);
  called("getLatestExport");
  called("getExportManifest");
  const signature = { params: ofExport, parseAs: "text" } as const;
  check((await client.GET("/api/exports/{name}/manifest.json.minisig", signature)).data === "a signature\n");
  called("getExportSignature");
}

async function files() {
  check(startsWith((await client.GET("/api/charts/{hash}/rox", { params: chart, ...bytes })).data, "ROX"));
  called("getRoxFile");
  const redirected = await client.GET("/api/charts/filter", bytes);
  const sequence = Number(redirected.response.url.split("/").at(-1));
  const filter = await client.GET("/api/charts/filter/{sequence}", { params: { path: { sequence } }, ...bytes });
  check(filter.data !== undefined && filter.data.byteLength === redirected.data?.byteLength);
  called("goToHashFilter");
  called("getHashFilter");
  const zstd = "(\u00b5/\u00fd";
  const params = ofExport;
  check(startsWith((await client.GET("/api/exports/{name}/chartsets.ndjson.zst", { params, ...bytes })).data, zstd));
  called("getExportedChartsets");
  check(startsWith((await client.GET("/api/exports/{name}/catalogue.sqlite.zst", { params, ...bytes })).data, zstd));
  called("getExportedCatalogue");
  check(startsWith((await client.GET("/api/exports/{name}/rox.tar", { params, ...bytes })).data, ""));
  called("getExportedRoxFiles");
  const range = { params: { ...ofExport, header: { Range: "bytes=0-4" } }, ...bytes };
  const part = await client.GET("/api/exports/{name}/catalogue.parquet", range);
  check(part.response.status === 206 && startsWith(part.data, "PAR1"));
  called("getExportedParquet");
}

async function otherStatuses() {
  const known = await client.GET("/api/charts/{hash}", { params: chart });
  const header = { "If-None-Match": known.response.headers.get("etag") ?? "" };
  const again = await client.GET("/api/charts/{hash}", { params: { ...chart, header } });
  check(again.response.status === 304 && again.data === undefined);
  called("304");
  const malformed = await client.GET("/api/charts/{hash}", { params: { path: { hash: "x" } } });
  check(malformed.error?.type === "/problems/malformed-hash" && malformed.error.parameter === "hash");
  called("400");
  const missing = await client.GET("/api/charts/{hash}/rox", { params: { path: { hash: UNKNOWN } } });
  check(missing.error?.status === 404);
  called("404");
  await limited.GET("/api/chartsets");
  const refused = await limited.GET("/api/chartsets");
  check(refused.error?.status === 429 && Number(refused.response.headers.get("retry-after")) >= 1);
  called("429");
}

async function main() {
  await charts();
  await chartsets();
  await bulk();
  await files();
  await otherStatuses();
}
void main();
