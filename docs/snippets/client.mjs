// Uses a chart index: node client.mjs https://charts.example

const base = process.argv[2];
// A way to reach you, so that the operator can ask before blocking. (Browsers send their own.)
const userAgent = "example-client/1.0 (me@example.org)";

const cache = new Map(); // URL -> {tag, json}: keep it, so that the next run uses it

/** The JSON at a path. Sends the ETag of an earlier response, and waits when the limit is exceeded. */
async function get(path, parameters = {}) {
  const url = new URL(path, base);
  url.search = new URLSearchParams(parameters);
  const cached = cache.get(url.href);
  for (;;) {
    const headers = { "User-Agent": userAgent };
    if (cached) headers["If-None-Match"] = cached.tag;
    const response = await fetch(url, { headers });
    if (response.status === 304) {
      console.error("not modified"); // the cached JSON is current
      return cached.json;
    }
    if (response.status === 429 || response.status === 503) {
      const seconds = Number(response.headers.get("Retry-After"));
      console.error(`waiting ${seconds} s`);
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      continue;
    }
    const json = await response.json();
    if (!response.ok) throw new Error(`${json.status} ${json.title}: ${json.detail}`);
    cache.set(url.href, { tag: response.headers.get("ETag"), json });
    return json;
  }
}

/** All chartsets that match, page by page. */
async function* chartsets(filters) {
  for (let page = 1; ; page++) {
    const found = await get("/api/chartsets", { ...filters, page });
    yield* found.items;
    if (page * found.perPage >= found.total) return;
  }
}

let last;
for await (const chartset of chartsets({ q: "harbour", sort: "title", perPage: 1 })) {
  console.log(chartset.id, chartset.title);
  last = chartset.id;
}
const detail = await get(`/api/chartsets/${last}`);
const hash = detail.charts[0].chart.hash;
await get(`/api/charts/${hash}`);
const lookup = await get(`/api/charts/${hash}`); // the second time it is not modified
console.log(lookup.status, lookup.sources?.[0].ref);
