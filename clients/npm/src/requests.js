// Requests to an index: conditional, repeated while it asks to wait, with one class of errors.

/** Too many requests, and what the index and proxies in front of it send while they are unavailable. */
const REPEATED = [429, 502, 503, 504];
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [1_000, 30_000];
/** The longest that a timer takes. */
const MAX_WAIT_MS = 2 ** 31 - 1;
const RESPONSE_TIMEOUT_MS = 90_000;
const MAX_CACHED_BYTES = 32 * 2 ** 20;

/** Why a request has failed: the problem details (RFC 9457) of the response, if it has them. */
export class ChartIndexError extends Error {
  constructor(url, { status = 0, retryAfterMs, problem, cause }) {
    const { type = "about:blank", title = "", detail = "" } = problem;
    super([`${url}:`, status || "", title, detail && `(${detail})`].filter(Boolean).join(" "), { cause });
    Object.assign(this, { name: "ChartIndexError", url: String(url), status, type, title, detail, problem, retryAfterMs });
  }
}

/** Why a response is not one of a chart index. */
export const invalid = (url, title, cause) => new ChartIndexError(url, { problem: { title }, cause });

/** The newest responses. */
class MemoryCache {
  #entries = new Map();
  #bytes = 0;

  get(key) {
    return this.#entries.get(key);
  }

  set(key, entry) {
    const bytes = bytesOf(key, entry);
    this.#delete(key);
    if (bytes > MAX_CACHED_BYTES) return;
    this.#entries.set(key, entry);
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) if (this.#bytes > MAX_CACHED_BYTES) this.#delete(oldest);
  }

  #delete(key) {
    const entry = this.#entries.get(key);
    if (entry && this.#entries.delete(key)) this.#bytes -= bytesOf(key, entry);
  }
}

/** In memory, a character of a text has two bytes. */
const bytesOf = (key, { body }) => 2 * key.length + (body.byteLength ?? 2 * body.length);

/** A browser names itself, and caches responses. */
const isBrowser = () => /^Mozilla/.test(globalThis.navigator?.userAgent);

/** The address of an index without a slash at its end. */
function checkedBase(base) {
  const { href, protocol, username, password } = new URL(base, globalThis.location?.href);
  if (!/^https?:$/.test(protocol)) throw new TypeError(`${href} does not begin with http:// or https://`);
  if (username || password) throw new TypeError("the address has a user name or a password, which no request may have");
  return href.replace(/\/*(?:[?#].*)?$/, "");
}

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
    this.#base = checkedBase(base);
    this.#headers = isInBrowser ? {} : { "User-Agent": userAgent };
    // It throws for characters that no header may have.
    new Headers(this.#headers);
    const {
      cache = isInBrowser ? undefined : new MemoryCache(),
      // A browser's `fetch` must not be called as a method of another object.
      fetch = (...request) => globalThis.fetch(...request),
      maxAttempts = 6,
      maxWaitMs = 120_000,
      wait = sleep,
    } = options;
    this.#options = { cache, fetch, maxAttempts, maxWaitMs, wait };
  }

  /** The JSON at a path. Lists in the query are joined by commas, and what is undefined is left out. */
  json(path, query, options) {
    return this.#get("text", this.#url(path, query), parsed, options);
  }

  /** The bytes at a path as a function reads them. They belong to the cache. */
  bytes(path, read, options) {
    return this.#get("bytes", this.#url(path), read, options);
  }

  async post(path, query, json, { signal } = {}) {
    const url = this.#url(path, query);
    const headers = { ...this.#headers, "Content-Type": "application/json" };
    // A redirected POST may become a GET.
    const request = { method: "POST", headers, body: JSON.stringify(json), signal, redirect: "manual" };
    const { body } = await this.#send(url, request, "text");
    return parsed(body, url);
  }

  #url(path, query = {}) {
    if (!path.startsWith("/")) throw new TypeError(`${path} does not begin with a slash`);
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
    return url;
  }

  /** What is read of the body at an address: of the cached one, if its tag is still that of the index. */
  async #get(kind, url, read, { signal } = {}) {
    const { cache } = this.#options;
    const key = `${kind} ${url}`;
    const cached = await cache?.get(key);
    const headers = cached ? { ...this.#headers, "If-None-Match": cached.etag } : this.#headers;
    const { response, body } = await this.#send(url, { headers, signal }, kind);
    if (response.status === 304) return read(cached.body, url);
    const value = read(body, url);
    const etag = response.headers.get("ETag");
    if (etag) await cache?.set(key, { etag, body });
    return value;
  }

  /** Sends a request again while the index asks for that, or does not respond. */
  async #send(url, request, kind) {
    const { maxAttempts, maxWaitMs, wait } = this.#options;
    for (let [attempt, waitedMs] = [1, 0]; ; attempt += 1) {
      const { response, body, cause } = await this.#attempt(url, request, kind);
      const isConfirmed = response?.status === 304 && request.headers["If-None-Match"];
      if (response?.ok || isConfirmed) return { response, body };
      const retryAfterMs = retryAfter(response?.headers);
      const waitMs = Math.min(retryAfterMs || backoff(attempt), MAX_WAIT_MS);
      const isRepeated = !response || REPEATED.includes(response.status);
      if (!isRepeated || attempt >= maxAttempts || waitedMs + waitMs > maxWaitMs) {
        throw new ChartIndexError(url, { status: response?.status, retryAfterMs, problem: problemOf(response, body, cause), cause });
      }
      await wait(waitMs, { status: response?.status ?? 0, signal: request.signal });
      waitedMs += waitMs;
    }
  }

  /** The response with its body, or why there is none. */
  async #attempt(url, { signal, ...request }, kind) {
    // Node.js 18 has no AbortSignal.any.
    const controller = new AbortController();
    const stop = () => controller.abort(signal.reason);
    const timeout = new Error(`no response within ${RESPONSE_TIMEOUT_MS / 1000} seconds`);
    const timer = setTimeout(() => controller.abort(timeout), RESPONSE_TIMEOUT_MS);
    signal?.addEventListener("abort", stop);
    try {
      signal?.throwIfAborted();
      const response = await this.#options.fetch(url, { ...request, signal: controller.signal });
      clearTimeout(timer);
      const isBytes = response.ok && kind === "bytes";
      return { response, body: isBytes ? new Uint8Array(await response.arrayBuffer()) : await response.text() };
    } catch (error) {
      signal?.throwIfAborted();
      return { cause: controller.signal.aborted ? timeout : error };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
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
    // A browser does not tell more of a redirect.
    return { title: response.statusText || (response.status ? "" : "A redirect") };
  }
}

function parsed(text, url) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalid(url, "The response is no JSON", cause);
  }
  if (Object(value) !== value) throw invalid(url, "The response is no JSON object");
  return value;
}
