// Calls every operation of an index with the client of @hey-api/openapi-ts, and prints their ids.
import { BASE, LIMITED, CHARTSET, EXPORT, HASH, UNKNOWN, VARIANT, called, check, startsWith } from "./expected";
import * as api from "./hey_api_client";
import { createClient } from "./hey_api_client/client";

const client = createClient({ baseUrl: BASE });
const limited = createClient({ baseUrl: LIMITED });
const chart = { client, path: { hash: HASH } };
const ofExport = { client, path: { name: EXPORT } };

const content = async (blob: Blob | undefined) => (await blob?.arrayBuffer()) as ArrayBuffer;

async function charts() {
  const { data: lookup } = await api.lookUpChart({ ...chart, query: { include: ["variants", "links"] } });
  check(lookup?.status === "known" && lookup.chart.notes === 36 && lookup.sources[0].url !== undefined);
  called("lookUpChart");
  const { data: unknown } = await api.lookUpChart({ client, path: { hash: UNKNOWN } });
  check(unknown?.status === "unknown" && unknown.chartHash === UNKNOWN);
  const body = { hashes: [HASH], charts: [{ md5: "0".repeat(32) }] };
  const { data: batch } = await api.lookUpCharts({ client, body });
  const [known, other] = batch?.items ?? [];
  check(known.status === "known" && known.chart.hash === HASH);
  check(other.status === "unknown" && other.md5 === "0".repeat(32));
  called("lookUpCharts");
  check((await api.getChartPreview(chart)).data?.keys === 4);
  called("getChartPreview");
  const { data: variants } = await api.listVariantCharts({ client, path: { variant: VARIANT } });
  check(variants?.items[0].hash === HASH);
  called("listVariantCharts");
}

async function chartsets() {
  const query = { keys: [4, 7], include: ["rating" as const, "updated" as const], after: "start", perPage: 1 };
  const { data: list } = await api.listChartsets({ client, query });
  check(list?.items.length === 1 && list.nextAfter !== undefined && list.items[0].updatedAtMs !== undefined);
  called("listChartsets");
  const { data: set } = await api.getChartset({ client, path: { id: CHARTSET } });
  check(set?.charts.some((entry) => entry.chart.hash === HASH));
  called("getChartset");
  const { data: random } = await api.chooseChartset({ client, query: { query: "keys=7" } });
  check(random?.charts.length !== 0 && random?.keys.includes(7));
  called("chooseChartset");
  const setSource = await api.goToSource({ client, path: { id: CHARTSET }, redirect: "manual" });
  check(setSource.response?.status === 302 && setSource.response.headers.has("location"));
  called("goToSource");
  const source = await api.goToChartSource({ ...chart, redirect: "manual" });
  check(source.response?.status === 302 && source.response.headers.has("location"));
  called("goToChartSource");
}

async function bulk() {
  const { data: changes } = await api.listChanges({ client, query: { limit: 1000 } });
  check(changes?.hasMore === false && changes.items.some((change) => change.chartset !== undefined));
  called("listChanges");
  const { data: newest } = await api.getLatestExport({ client });
  const { data: manifest } = await api.getExportManifest(ofExport);
  check(newest !== undefined && newest.lineage === manifest?.lineage);
  called("getLatestExport");
  called("getExportManifest");
  check((await api.getExportSignature(ofExport)).data === "a signature\n");
  called("getExportSignature");
}

async function files() {
  check(startsWith(await content((await api.getRoxFile(chart)).data), "ROX"));
  called("getRoxFile");
  const redirected = await api.goToHashFilter({ client });
  const sequence = Number(redirected.response?.url.split("/").at(-1));
  const filter = await api.getHashFilter({ client, path: { sequence } });
  check(filter.data !== undefined && filter.data.size === redirected.data?.size);
  called("goToHashFilter");
  called("getHashFilter");
  const zstd = "(\u00b5/\u00fd";
  // Of these media types the client does not know that they are no text.
  const files = { ...ofExport, parseAs: "blob" as const };
  check(startsWith(await content((await api.getExportedChartsets(files)).data), zstd));
  called("getExportedChartsets");
  check(startsWith(await content((await api.getExportedCatalogue(files)).data), zstd));
  called("getExportedCatalogue");
  check(startsWith(await content((await api.getExportedRoxFiles(files)).data), ""));
  called("getExportedRoxFiles");
  const part = await api.getExportedParquet({ ...files, headers: { Range: "bytes=0-4" } });
  check(part.response?.status === 206 && startsWith(await content(part.data), "PAR1"));
  called("getExportedParquet");
}

async function otherStatuses() {
  const tag = (await api.lookUpChart(chart)).response?.headers.get("etag") ?? "";
  const again = await api.lookUpChart({ ...chart, headers: { "If-None-Match": tag } });
  check(again.response?.status === 304 && again.data === undefined);
  called("304");
  const malformed = await api.lookUpChart({ client, path: { hash: "x" } });
  check(malformed.error?.type === "/problems/malformed-hash" && malformed.error.parameter === "hash");
  called("400");
  const missing = await api.getRoxFile({ client, path: { hash: UNKNOWN } });
  check(missing.error?.status === 404);
  called("404");
  await api.getChartset({ client: limited, path: { id: CHARTSET } });
  const refused = await api.getChartset({ client: limited, path: { id: CHARTSET } });
  check(refused.error?.status === 429 && Number(refused.response?.headers.get("retry-after")) >= 1);
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
