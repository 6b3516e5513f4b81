// The types of the package. What the API returns has the types of the OpenAPI document.

import type { paths } from "./openapi.js";

type Get<Path extends keyof paths> = NonNullable<paths[Path]["get"]>;
type Json<Operation> = Operation extends { responses: { 200: { content: { "application/json": infer Body } } } } ? Body : never;
type Query<Operation> = Operation extends { parameters: { query?: infer Parameters } } ? NonNullable<Parameters> : never;

type LookupOperation = Get<"/api/charts/{hash}">;
type BatchOperation = NonNullable<paths["/api/charts/lookup"]["post"]>;
type ListOperation = Get<"/api/chartsets">;
type ChartsetOperation = Get<"/api/chartsets/{id}">;

/** What the index knows of a chart. */
export type ChartLookup = Json<LookupOperation>;
/** An item of a batch: a `ChartLookup`, with the identifier that the chart was requested by. */
export type BatchItem = Json<BatchOperation>["items"][number];
/** A page of chartsets. */
export type ChartsetList = Json<ListOperation>;
export type Chartset = ChartsetList["items"][number];
/** A chartset with its charts. */
export type ChartsetDetail = Json<ChartsetOperation>;
/** The notes and the timing of a chart. */
export type Preview = Json<Get<"/api/charts/{hash}/preview">>;
/** The parameters of the list. Lists of values may be arrays. */
export type Filters = Query<ListOperation>;

/**
 * A chart of a batch, by one of its identifiers. Other fields are not sent, such as the path of a local chart,
 * and `variant` only if the batch includes variants.
 */
export type ChartIdentifier = string | { hash: string; variant?: string } | { md5: string } | { alphaBeatmapId: number };

export interface RequestOptions {
  /** Ends the request, and the wait before the next attempt. */
  signal?: AbortSignal;
}

/** A response in the cache. A `body` is text or, of ROX files and hash filters, bytes. */
export interface CachedResponse {
  etag: string;
  body: string | Uint8Array;
}

/**
 * A cache of responses, such as a `Map`, or one that writes files. A key is `text` or `bytes`, a space, and the
 * address.
 */
export interface Cache {
  get(key: string): CachedResponse | undefined | Promise<CachedResponse | undefined>;
  set(key: string, response: CachedResponse): unknown;
}

export interface ClientOptions {
  /**
   * Your program and how to reach you, such as `my-client/1.0 (me@example.org)`. Required, but not in a
   * browser, which sends its own.
   */
  userAgent?: string;
  /** By default the newest responses are in memory, up to 32 MiB; in a browser none, since it has a cache. */
  cache?: Cache;
  fetch?: (url: URL, request: RequestInit) => Promise<Response>;
  /** How often a request is sent at most. By default 6. */
  maxAttempts?: number;
  /** How long a request waits at most, over all attempts. By default two minutes. */
  maxWaitMs?: number;
  /**
   * Waits before a request is sent again, for example with a countdown. `status` is 0 if there was no response.
   */
  wait?: (ms: number, reason: { status: number; signal?: AbortSignal }) => Promise<unknown>;
}

/**
 * A client of an index. A request is sent again after a 429, 502, 503 or 504 and if there is no response within
 * 90 s: after the time of `Retry-After`, or after 1 s, 2 s, 4 s and so on, less a random part.
 *
 * @throws {ChartIndexError} (all methods) if the index refuses the request, or asks to wait for longer than
 * `maxWaitMs`
 */
export class ChartIndex {
  /** @param base the address of the index, with or without a slash at its end */
  constructor(base: string | URL, options?: ClientOptions);

  /** Looks up a chart by its note hash. An unknown one is no error. */
  lookup(
    hash: string,
    options?: RequestOptions & { include?: Query<LookupOperation>["include"]; variant?: string },
  ): Promise<ChartLookup>;

  /**
   * Looks up any number of charts, by note hashes or by other identifiers, and returns an item for each, in
   * their order. Sends batches of up to 1,000, and smaller ones on a link that is too slow for them.
   */
  lookupMany(
    charts: Iterable<ChartIdentifier> | { md5?: string[]; ids?: number[] },
    options?: RequestOptions & { include?: NonNullable<Query<BatchOperation>["include"]> },
  ): Promise<BatchItem[]>;

  /** All chartsets that match, read page by page while they are used. */
  search(filters?: Filters, options?: RequestOptions): AsyncGenerator<Chartset, void, undefined>;

  /** One page of chartsets, with the total number. */
  list(filters?: Filters, options?: RequestOptions): Promise<ChartsetList>;

  /** A chartset with its charts. */
  chartset(
    id: string,
    options?: RequestOptions & { include?: Query<ChartsetOperation>["include"] },
  ): Promise<ChartsetDetail>;

  /** The chart as a ROX file. */
  rox(hash: string, options?: RequestOptions): Promise<Uint8Array>;

  /** The notes and the timing of a chart. */
  preview(hash: string, options?: RequestOptions): Promise<Preview>;

  /** The newest hash filter; undefined if the index has none yet. */
  hashFilter(options?: RequestOptions): Promise<HashFilter | undefined>;

  /**
   * The JSON of any other endpoint.
   *
   * @param path begins with a slash
   */
  get(path: string, query?: Record<string, unknown>, options?: RequestOptions): Promise<unknown>;
}

/** Tells without a request which charts an index does not know. */
export class HashFilter {
  /**
   * @param bytes a response of `/api/charts/filter`
   * @throws {Error} if it is no hash filter of version 1
   */
  constructor(bytes: Uint8Array);

  /** False if the index did not know the note hash when the filter was built. If true, look it up. */
  has(hash: string): boolean;
}

/** Why a request has failed. */
export class ChartIndexError extends Error {
  /** The status of the response; 0 if there was none, or no response of a chart index. */
  readonly status: number;
  /** The type of the problem, such as `/problems/rate-limited`. */
  readonly type: string;
  readonly title: string;
  readonly detail: string;
  /** The problem details (RFC 9457) of the response, such as its `parameter`. */
  readonly problem: Record<string, unknown>;
  readonly url: string;
  /** How long the index asks to wait, if it says so. */
  readonly retryAfterMs?: number;
}

/** A chart of a local file. Texts are empty where the file has none. */
export interface HashedChart {
  /** The path of the file; of a file in an archive, with the path of the archive before it. */
  file: string;
  hash: string;
  keys: number;
  /** What the chart has in common with its conversions, if it has enough rows. */
  variant?: string;
  title: string;
  artist: string;
  creator: string;
  difficulty: string;
  reason?: undefined;
}

/** A file, or one of its charts, that has no note hash. */
export interface RefusedChart {
  file: string;
  reason: string;
  /** The chart, by its step type and difficulty, if the file may have several. */
  chart?: string;
  hash?: undefined;
}

export type LocalChart = HashedChart | RefusedChart;

/**
 * The charts of a file, which is not sent: `.osu`, `.qua`, `.sm`, `.ssc`, or an archive, `.osz`, `.olz`, `.qp`,
 * `.smzip` or `.zip`. Never throws for what is in a file.
 *
 * @param path its name, whose extension is that of its format
 */
export function hashFile(path: string, content: Blob | ArrayBuffer | Uint8Array): Promise<LocalChart[]>;

/** A note with times in microseconds. A long note has an end. */
export interface TimedNote {
  startUs: number;
  column: number;
  endUs?: number;
}

/** The note hash of notes in any order, or why they have none. */
export function hashOfTimedNotes(
  keys: number,
  notes: TimedNote[],
): { hash: string; keys: number; variant?: string; reason?: undefined } | { reason: string; hash?: undefined };
