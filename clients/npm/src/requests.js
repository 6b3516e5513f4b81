// Requests to an index: conditional, repeated while it asks to wait, with one class of errors.

/** Too many requests, and what the index and proxies in front of it send while they are unavailable. */
const REPEATED = [429, 502, 503, 504];
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [1_000, 30_000];
const MAX_CACHED = 500;

/** Why a request has failed: the problem details (RFC 9457) of the response, if it has them. */
export class ChartIndexError extends Error {
  constructor(url, { status = 0, retryAfterMs, problem, cause }) {
    const { type = "about:blank", title = "", detail = "" } = problem;
    super([`${url}:`, status || "", title, detail && `(${detail})`].filter(Boolean).join(" "), { cause });
    Object.assign(this, { name: "ChartIndexError", url: String(url), status, type, title, detail, problem, retryAfterMs });
  }
}

/** The newest responses, by address. */
class MemoryCache {
  #entries = new Map();

  get(key) {
    return this.#entries.get(key);
  }

  set(key, entry) {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (this.#entries.size > MAX_CACHED) this.#entries.delete(this.#entries.keys().next().value);
  }
}

/** A browser names itself, and caches responses. */
const isBrowser = () => /^Mozilla/.test(globalThis.navigator?.userAgent);

export class Requests {
  #base;
  #headers;
  #options;

  constructor(base, options = {}) {
    const isInBrowser = isBrowser();
    const { userAgent } = options;
    if (!isInBrowser && !/\S/.test(userAgent ?? "")) {
      throw new TypeError('userAgent is required: your program and how to reach you, such as "my-client/1.0 (me@example.org)"');
    }
    const { href, protocol } = new URL(base, globalThis.location?.href);
    if (!/^https?:$/.test(protocol)) throw new TypeError(`${href} does not begin with http:// or https://`);
    this.#base = href.replace(/\/*(?:[?#].*)?$/, "");
    this.#headers = isInBrowser ? {} : { "User-Agent": userAgent };
    const cache = isInBrowser ? undefined : new MemoryCache();
    // A browser's `fetch` must not be called as a method of another object.
    const fetch = (...request) => globalThis.fetch(...request);
    this.#options = { cache, fetch, maxAttempts: 6, maxWaitMs: 120_000, wait: sleep, ...options };
  }

  /** The JSON at a path. Lists in the query are joined by commas, and what is undefined is left out. */
  async json(path, query, options) {
    const url = this.#url(path, query);
    return parsed(url, await this.#get(url, (response) => response.text(), options));
  }

  /** The bytes at a path, which belong to the cache. */
  async bytes(path, options) {
    return this.#get(this.#url(path), async (response) => new Uint8Array(await response.arrayBuffer()), options);
  }

  async post(path, query, json, { signal } = {}) {
    const url = this.#url(path, query);
    const headers = { ...this.#headers, "Content-Type": "application/json" };
    const request = { method: "POST", headers, body: JSON.stringify(json), signal };
    const { body } = await this.#send(url, request, (response) => response.text());
    return parsed(url, body);
  }

  #url(path, query = {}) {
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
    return url;
  }

  /** The body at an address: the cached one, if its tag is still that of the index. */
  async #get(url, read, { signal } = {}) {
    const { cache } = this.#options;
    const cached = await cache?.get(url.href);
    const headers = cached ? { ...this.#headers, "If-None-Match": cached.etag } : this.#headers;
    const { response, body } = await this.#send(url, { headers, signal }, read);
    if (response.status === 304) return cached.body;
    const etag = response.headers.get("ETag");
    if (etag) await cache?.set(url.href, { etag, body });
    return body;
  }

  /** Sends a request again while the index asks for that, or does not respond. */
  async #send(url, request, read) {
    const { maxAttempts, maxWaitMs, wait } = this.#options;
    for (let [attempt, waitedMs] = [1, 0]; ; attempt += 1) {
      const { response, body, cause } = await this.#attempt(url, request, read);
      if (response?.ok || response?.status === 304) return { response, body };
      const retryAfterMs = retryAfter(response?.headers);
      const waitMs = retryAfterMs || backoff(attempt);
      const isRepeated = !response || REPEATED.includes(response.status);
      if (!isRepeated || attempt >= maxAttempts || waitedMs + waitMs > maxWaitMs) {
        throw new ChartIndexError(url, { status: response?.status, retryAfterMs, problem: problemOf(response, body, cause), cause });
      }
      await wait(waitMs, { status: response?.status ?? 0, signal: request.signal });
      waitedMs += waitMs;
    }
  }

  /** The response with its body, or why there is none. */
  async #attempt(url, request, read) {
    try {
      const response = await this.#options.fetch(url, request);
      return { response, body: await (response.ok ? read(response) : response.text()) };
    } catch (cause) {
      request.signal?.throwIfAborted();
      return { cause };
    }
  }
}

/**
 * The milliseconds of `Retry-After` (RFC 9110, 10.2.3): a number of seconds, or a date, which is compared with
 * that of the response, since clocks differ. Undefined if it is neither.
 */
function retryAfter(headers) {
  const value = headers?.get("Retry-After")?.trim() ?? "";
  if (/^\d+$/.test(value)) return 1000 * Number(value);
  if (!/^[A-Z][a-z]/.test(value)) return undefined;
  // Of the three forms of dates, that of asctime has no time zone.
  const time = Date.parse(/GMT$/.test(value) ? value : `${value} GMT`);
  const now = Date.parse(headers?.get("Date")) || Date.now();
  return Number.isNaN(time) ? undefined : Math.max(0, time - now);
}

/** Twice as long each time; a random part keeps clients from coming back together. */
function backoff(attempt) {
  return Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS) * (0.5 + Math.random() / 2);
}

function sleep(ms, { signal }) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** The problem details of a response; those of a proxy may be none. */
function problemOf(response, body, cause) {
  if (!response) return { title: "No response", detail: cause.cause?.message ?? cause.message };
  try {
    return Object(JSON.parse(body));
  } catch {
    return { title: response.statusText };
  }
}

function parsed(url, text) {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ChartIndexError(url, { problem: { title: "The response is no JSON" }, cause });
  }
}
