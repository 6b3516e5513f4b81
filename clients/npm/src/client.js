// A client of the API (docs/api.md).

import { HashFilter } from "./hash_filter.js";
import { ChartIndexError, Requests, invalid } from "./requests.js";

/** The maximum of a batch, and with what it includes. */
const MAX_BATCH = 1_000;
const MAX_WITH = { variants: 100, chartsets: 100 };
const MAX_WITH_BOTH = 25;
const MAX_PER_PAGE = 60;
const [BATCH, LIST] = ["/api/charts/lookup", "/api/chartsets"];

export class ChartIndex {
  #requests;
  /** How many charts a batch has at most, once the link was too slow for more. */
  #batch = Infinity;

  constructor(base, options) {
    this.#requests = new Requests(base, options);
  }

  async get(path, query, options) {
    return this.#requests.json(path, query, options);
  }

  lookup(hash, { include, variant, ...options } = {}) {
    return this.get(`/api/charts/${encodeURIComponent(hash)}`, { include, variant }, options);
  }

  async lookupMany(charts, { include = [], ...options } = {}) {
    const included = String(include).split(",");
    const requested = chartsOf(charts, included.includes("variants"));
    const limit = maxBatch(included);
    const items = [];
    while (items.length < requested.length) {
      const size = Math.min(this.#batch, limit);
      const batch = requested.slice(items.length, items.length + size);
      try {
        items.push(...(await this.#postBatch(batch, include, options)));
      } catch (error) {
        // The link is too slow for so many.
        if (error.status !== 408 || batch.length === 1) throw error;
        this.#batch = Math.min(this.#batch, Math.ceil(batch.length / 2));
      }
    }
    return items;
  }

  async #postBatch(charts, include, options) {
    const query = include.length > 0 ? { include } : {};
    const isHash = ({ hash, variant }) => hash && !variant;
    const body = charts.every(isHash) ? { hashes: charts.map(({ hash }) => hash) } : { charts };
    const { items } = await this.#requests.post(BATCH, query, body, options);
    if (!Array.isArray(items) || items.length !== charts.length) {
      throw invalid(BATCH, `The response does not have ${charts.length} items`);
    }
    const isOther = ({ hash }, index) => !items[index] || (hash && items[index].chartHash !== hash);
    if (charts.some(isOther)) throw invalid(BATCH, "The items of the response are not those of the charts");
    return items;
  }

  async list(filters = {}, options) {
    const page = await this.get(LIST, filters, options);
    if (Array.isArray(page.items)) return page;
    throw invalid(LIST, "The response has no items");
  }

  async *search({ after, ...filters } = {}, options) {
    for (let next = after ?? "start"; next !== undefined; ) {
      const { items, nextAfter } = await this.list({ perPage: MAX_PER_PAGE, ...filters, after: next }, options);
      yield* items;
      if (nextAfter === next) throw invalid(LIST, "The next page is the same again");
      next = nextAfter ?? undefined;
    }
  }

  chartset(id, { include, ...options } = {}) {
    return this.get(`/api/chartsets/${encodeURIComponent(id)}`, { include }, options);
  }

  rox(hash, options) {
    return this.#requests.bytes(`/api/charts/${encodeURIComponent(hash)}/rox`, (bytes) => bytes.slice(), options);
  }

  preview(hash, options) {
    return this.get(`/api/charts/${encodeURIComponent(hash)}/preview`, {}, options);
  }

  async hashFilter(options) {
    try {
      return await this.#requests.bytes("/api/charts/filter", filterOf, options);
    } catch (error) {
      // None has been built yet.
      if (error instanceof ChartIndexError && error.status === 404) return undefined;
      throw error;
    }
  }
}

/** The charts of a batch, as objects of the API. */
function chartsOf(charts, withVariants) {
  if (typeof charts !== "string" && charts?.[Symbol.iterator]) {
    return Array.from(charts, (chart) => identifierOf(chart, withVariants));
  }
  const { md5 = [], ids = [], ...others } = Object(charts);
  if (!charts || Object.keys(others).length > 0) throw new TypeError("give a list of charts, or { md5, ids }");
  return [...md5.map((one) => ({ md5: one })), ...ids.map((alphaBeatmapId) => ({ alphaBeatmapId }))];
}

/**
 * What identifies a chart. Nothing else of a local chart is sent, such as its path, and its variant only where
 * it is used: a thousand hashes with variants exceed the maximum of a body.
 */
function identifierOf(chart, withVariant) {
  const { hash, variant, md5, alphaBeatmapId } = typeof chart === "string" ? { hash: chart } : Object(chart);
  if (hash) return withVariant ? { hash, variant } : { hash };
  if (md5) return { md5 };
  if (alphaBeatmapId === undefined) throw new TypeError("a chart has no hash, md5 or alphaBeatmapId");
  return { alphaBeatmapId };
}

function filterOf(bytes, url) {
  try {
    return new HashFilter(bytes);
  } catch (cause) {
    throw invalid(url, `The response is no hash filter: ${cause.message}`, cause);
  }
}

function maxBatch(included) {
  const limits = included.flatMap((name) => MAX_WITH[name] ?? []);
  return limits.length > 1 ? MAX_WITH_BOTH : (limits[0] ?? MAX_BATCH);
}
