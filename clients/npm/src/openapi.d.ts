// The objects of the API: `scripts/npm-client types` writes this file from the OpenAPI document.

export interface paths {
    "/api/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What was added, updated and removed */
        get: operations["listChanges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/charts/{hash}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where a chart can be downloaded, and its metadata */
        get: operations["lookUpChart"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/charts/{hash}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The notes and the timing of the chart as JSON */
        get: operations["getChartPreview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/charts/{hash}/rox": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The chart as a ROX file */
        get: operations["getRoxFile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/charts/filter": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A redirect to the newest hash filter, which tells which charts are unknown */
        get: operations["goToHashFilter"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/charts/filter/{sequence}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A hash filter */
        get: operations["getHashFilter"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/charts/lookup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The same for up to 1,000 charts */
        post: operations["lookUpCharts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/chartsets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A page of chartsets, filtered and sorted */
        get: operations["listChartsets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/chartsets/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One chartset with its charts */
        get: operations["getChartset"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/exports/{name}/catalogue.parquet": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The charts of an export as a Parquet file */
        get: operations["getExportedParquet"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/exports/{name}/catalogue.sqlite.zst": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The catalogue of an export for SQLite */
        get: operations["getExportedCatalogue"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/exports/{name}/chartsets.ndjson.zst": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All chartsets of an export */
        get: operations["getExportedChartsets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/exports/{name}/manifest.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The manifest of an export */
        get: operations["getExportManifest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/exports/{name}/manifest.json.minisig": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The signature of the manifest */
        get: operations["getExportSignature"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/exports/{name}/rox.tar": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All ROX files of an export */
        get: operations["getExportedRoxFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/exports/latest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A redirect to the manifest of the newest export */
        get: operations["getLatestExport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/random": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A redirect to any chartset that filters admit */
        get: operations["chooseChartset"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/variants/{variant}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Charts with the same order of rows: converted copies */
        get: operations["listVariantCharts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/go/chart/{hash}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A redirect to the page from which the chart can be downloaded */
        get: operations["goToChartSource"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/go/chartset/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A redirect to the page that publishes the chartset */
        get: operations["goToSource"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        BatchLookup: {
            /** @description For each chart, in the order of the request and those of `hashes` first, the body of its [chart lookup](/docs/api/chart-lookup), known or unknown */
            items: components["schemas"]["BatchLookupItem"][];
        };
        BatchLookupItem: components["schemas"]["KnownBatchItem"] | components["schemas"]["UnknownBatchItem"];
        BatchLookupRequest: {
            /** @description Charts, each by one identifier */
            charts?: components["schemas"]["ChartReference"][];
            /** @description [Note hashes](/docs/note-hash). They may be repeated */
            hashes?: components["schemas"]["NoteHash"][];
        };
        Change: {
            /** @description Whether an operator has removed the chart or chartset, or one that belonged to it; only of what was removed, and omitted if not */
            byOperator?: boolean;
            /** @description `added`, `updated` or `removed` */
            change: components["schemas"]["ChangeType"];
            /**
             * Format: int64
             * @description When the change was made
             */
            changedAtMs: number;
            /** @description [Note hash](/docs/note-hash) of the chart; only of a chart */
            chartHash?: components["schemas"]["NoteHash"];
            /** @description The [record](/docs/records#chartset-record) of the chartset; omitted if it was removed */
            chartset?: components["schemas"]["ChartsetRecord"];
            /** @description Id of the chartset; only of a chartset */
            id?: components["schemas"]["ChartsetId"];
            /** @description `chart` or `chartset` */
            kind: components["schemas"]["ChangeKind"];
            /** @description BLAKE3 digest of the [ROX file](/docs/api/rox-file), 64 lower-case hexadecimal characters; only of a chart whose file was replaced */
            roxBlake3?: components["schemas"]["FileDigest"];
            /**
             * Format: int64
             * @description Number of the change, below 2^53. No other change has it, and numbers may be left out
             */
            sequence: number;
        };
        /**
         * @description What has changed.
         * @enum {string}
         */
        ChangeKind: "chart" | "chartset";
        Changes: {
            /** @description Whether the feed continues after the page. [Mirrors](/docs/change-feed#mirrors) request the next one at once */
            hasMore: boolean;
            /** @description The changes, in ascending order of their sequence */
            items: components["schemas"]["Change"][];
            /** @description The [lineage](/docs/change-feed#lineage): the database that numbered the changes */
            lineage: components["schemas"]["Lineage"];
            /**
             * Format: int64
             * @description The value of `after` for the next page
             */
            next: number;
        };
        /**
         * @description What happened to it.
         * @enum {string}
         */
        ChangeType: "added" | "updated" | "removed";
        Chart: {
            /** @description Metadata: in a [lookup](/docs/api/chart-lookup) that of the chartset of its first source, in a chartset that of the file */
            artist: string;
            /**
             * Format: double
             * @description [BPM](/docs/records#chart-numbers)
             */
            bpmMain: number;
            /**
             * Format: double
             * @description [BPM](/docs/records#chart-numbers)
             */
            bpmMax: number;
            /**
             * Format: double
             * @description [BPM](/docs/records#chart-numbers)
             */
            bpmMin: number;
            /** @description Metadata: in a [lookup](/docs/api/chart-lookup) that of the chartset of its first source, in a chartset that of the file */
            creator: string;
            /**
             * Format: double
             * @description Notes per second
             */
            densityAvg: number;
            /**
             * Format: double
             * @description Notes per second
             */
            densityPeak: number;
            /** @description Metadata: in a [lookup](/docs/api/chart-lookup) that of the chartset of its first source, in a chartset that of the file */
            difficulty: string;
            /** @description Note hash */
            hash: components["schemas"]["NoteHash"];
            /** @description Key count, 4 to 7 */
            keys: components["schemas"]["KeyCount"];
            /**
             * Format: int32
             * @description Length
             */
            lengthMs: number;
            /**
             * Format: int32
             * @description Number of long notes
             */
            lns: number;
            /**
             * Format: int32
             * @description Version of the note hash: 1
             */
            noteHashVersion: number;
            /**
             * Format: int32
             * @description Number of notes, long notes included
             */
            notes: number;
            /** @description [What its rows consist of](/docs/records#chart-patterns), once it is computed; in responses of the API only with [`include=patterns`](/docs/api/extension-fields) */
            patterns?: components["schemas"]["Patterns"];
            /** @description [How hard it is to play](/docs/records#chart-rating), if it is rated; in responses of the API only with [`include=rating`](/docs/api/extension-fields) */
            rating?: components["schemas"]["Rating"];
            /**
             * Format: int64
             * @description Size of the ROX file in bytes
             */
            roxBytes: number;
            /** @description Metadata: in a [lookup](/docs/api/chart-lookup) that of the chartset of its first source, in a chartset that of the file */
            title: string;
            /** @description [Variant](/docs/variant), if the chart has one; in responses of the API only with [`include=variants`](/docs/api/variants) */
            variant?: components["schemas"]["Variant"];
            /**
             * Format: int32
             * @description Version of the variant: 1; only with `variant`
             */
            variantVersion?: number;
        };
        ChartLookup: components["schemas"]["KnownChart"] | components["schemas"]["UnknownChart"];
        ChartOccurrence: {
            /** @description Name of the difficulty in this set */
            difficulty: string;
            /** @description `/go/chartset/<id>`; omitted without a public source */
            downloadUrl?: string;
            /** @description The id of the [chartset](/docs/api/chartset-detail) */
            id: components["schemas"]["ChartsetId"];
            /** @description The title of the chartset */
            title: string;
        };
        ChartPreview: {
            /** @description The notes of each column, from the left */
            columns: number[][];
            /**
             * Format: int32
             * @description Key count, 4 to 7
             */
            keys: number;
            /**
             * Format: int32
             * @description Length
             */
            lengthMs: number;
            /** @description Scroll speeds: time and factor from then on; empty if the speed is constant */
            scroll: number[][];
            /** @description BPM points: time, BPM and, if these are not 4, beats per measure */
            timing: number[][];
            /**
             * Format: int32
             * @description Version of the format: 1
             */
            version: number;
        };
        ChartRecord: {
            /**
             * Format: int64
             * @description Id of the chart in the first game; omitted in packs of the second game
             */
            alphaBeatmapId?: number;
            /** @description Metadata: in a [lookup](/docs/api/chart-lookup) that of the chartset of its first source, in a chartset that of the file */
            artist: string;
            /** @description Title and artist in Latin letters; omitted if the file has none */
            artistRomanised?: string;
            /**
             * Format: double
             * @description [BPM](/docs/records#chart-numbers)
             */
            bpmMain: number;
            /**
             * Format: double
             * @description [BPM](/docs/records#chart-numbers)
             */
            bpmMax: number;
            /**
             * Format: double
             * @description [BPM](/docs/records#chart-numbers)
             */
            bpmMin: number;
            /** @description Metadata: in a [lookup](/docs/api/chart-lookup) that of the chartset of its first source, in a chartset that of the file */
            creator: string;
            /** @description `kind` and `ref` of the [source](/docs/records#sources) that the metadata names, whose confidence is `declared` */
            declaredSource?: components["schemas"]["PublicSource"];
            /**
             * Format: double
             * @description Notes per second
             */
            densityAvg: number;
            /**
             * Format: double
             * @description Notes per second
             */
            densityPeak: number;
            /** @description Metadata: in a [lookup](/docs/api/chart-lookup) that of the chartset of its first source, in a chartset that of the file */
            difficulty: string;
            /** @description Note hash */
            hash: components["schemas"]["NoteHash"];
            /** @description Key count, 4 to 7 */
            keys: components["schemas"]["KeyCount"];
            /**
             * Format: int32
             * @description Length
             */
            lengthMs: number;
            /**
             * Format: int32
             * @description Number of long notes
             */
            lns: number;
            /** @description MD5 digests of `.osu` and `.qua` files with the chart in this chartset, those of earlier files included; at most 64, omitted if there is none */
            md5s?: components["schemas"]["FileMd5"][];
            /**
             * Format: int32
             * @description Version of the note hash: 1
             */
            noteHashVersion: number;
            /**
             * Format: int32
             * @description Number of notes, long notes included
             */
            notes: number;
            /** @description [What its rows consist of](/docs/records#chart-patterns), once it is computed; in responses of the API only with [`include=patterns`](/docs/api/extension-fields) */
            patterns?: components["schemas"]["Patterns"];
            /** @description [How hard it is to play](/docs/records#chart-rating), if it is rated; in responses of the API only with [`include=rating`](/docs/api/extension-fields) */
            rating?: components["schemas"]["Rating"];
            /** @description [Variants](/docs/variant) of the chart with the heads of rolls in its files, which the ROX file does not have; at most 64, omitted if there is none */
            rollVariants?: components["schemas"]["Variant"][];
            /**
             * Format: int64
             * @description Size of the ROX file in bytes
             */
            roxBytes: number;
            /** @description Tags of the file, in its order */
            tags: string[];
            /** @description Metadata: in a [lookup](/docs/api/chart-lookup) that of the chartset of its first source, in a chartset that of the file */
            title: string;
            /** @description Title and artist in Latin letters; omitted if the file has none */
            titleRomanised?: string;
            /** @description [Variant](/docs/variant), if the chart has one; in responses of the API only with [`include=variants`](/docs/api/variants) */
            variant?: components["schemas"]["Variant"];
            /**
             * Format: int32
             * @description Version of the variant: 1; only with `variant`
             */
            variantVersion?: number;
        };
        ChartReference: {
            /**
             * Format: int64
             * @description Its id in the first game
             */
            alphaBeatmapId?: number;
            /** @description Its note hash */
            hash?: components["schemas"]["NoteHash"];
            /** @description MD5 digest of its `.osu` or `.qua` file, 32 lower-case hexadecimal characters: what these games know it by. A chart stays known by the digests of earlier files */
            md5?: components["schemas"]["FileMd5"];
            /** @description The [variant](/docs/variant) of its notes, used with [`include=variants`](/docs/api/variants) */
            variant?: components["schemas"]["Variant"];
        };
        Chartset: {
            /** @description Of the first chart in the order of the [detail](/docs/api/chartset-detail) */
            artist: string;
            /**
             * Format: double
             * @description Range over the charts
             */
            bpmMax: number;
            /**
             * Format: double
             * @description Range over the charts
             */
            bpmMin: number;
            /**
             * Format: int32
             * @description Number of charts
             */
            chartCount: number;
            /** @description The distinct non-empty creators of the charts, those with most charts first, joined by `, ` */
            creator: string;
            /**
             * Format: double
             * @description Highest `densityPeak` of the charts
             */
            densityMax: number;
            /** @description `/go/chartset/<id>`; omitted without a public source */
            downloadUrl?: string;
            /** @description [Chartset id](/docs/records#chartsets-and-ids), 16 lower-case hexadecimal characters */
            id: components["schemas"]["ChartsetId"];
            /** @description Key counts in the set, ascending */
            keys: components["schemas"]["KeyCount"][];
            /**
             * Format: int32
             * @description Range over the charts
             */
            lengthMaxMs: number;
            /**
             * Format: int32
             * @description Range over the charts
             */
            lengthMinMs: number;
            /**
             * Format: double
             * @description Range of the [ratings](/docs/rating) of the charts, if any has one; only in lists with [`include=rating`](/docs/api/chartset-list)
             */
            ratingMax?: number;
            /**
             * Format: double
             * @description Range of the [ratings](/docs/rating) of the charts, if any has one; only in lists with [`include=rating`](/docs/api/chartset-list)
             */
            ratingMin?: number;
            /** @description `alphaSet` or `betaPack`; omitted without a public source */
            sourceKind?: components["schemas"]["SourceKind"];
            /** @description Of the first chart in the order of the [detail](/docs/api/chartset-detail) */
            title: string;
            /**
             * Format: int64
             * @description When the chartset last changed in the index; only with [`include=updated`](/docs/api/extension-fields)
             */
            updatedAtMs?: number;
        };
        ChartsetChart: {
            /**
             * Format: int64
             * @description Id of the chart in the first game; omitted in packs of the second game and where the file has none
             */
            alphaBeatmapId?: number;
            /** @description The chart, with the metadata of the file in this set */
            chart: components["schemas"]["Chart"];
            /** @description The chartsets that contain the chart, up to 8: those with the sources of the chart first, in their order */
            chartsets?: components["schemas"]["ChartOccurrence"][];
            /** @description Name of the difficulty in this set */
            difficulty: string;
        };
        ChartsetDetail: {
            /** @description Of the first chart in the order of the [detail](/docs/api/chartset-detail) */
            artist: string;
            /**
             * Format: double
             * @description Range over the charts
             */
            bpmMax: number;
            /**
             * Format: double
             * @description Range over the charts
             */
            bpmMin: number;
            /**
             * Format: int32
             * @description Number of charts
             */
            chartCount: number;
            /** @description The charts, ordered by `keys`, then `densityAvg`, then `hash` */
            charts: components["schemas"]["ChartsetChart"][];
            /** @description The distinct non-empty creators of the charts, those with most charts first, joined by `, ` */
            creator: string;
            /**
             * Format: double
             * @description Highest `densityPeak` of the charts
             */
            densityMax: number;
            /** @description `/go/chartset/<id>`; omitted without a public source */
            downloadUrl?: string;
            /** @description [Chartset id](/docs/records#chartsets-and-ids), 16 lower-case hexadecimal characters */
            id: components["schemas"]["ChartsetId"];
            /** @description Key counts in the set, ascending */
            keys: components["schemas"]["KeyCount"][];
            /**
             * Format: int32
             * @description Range over the charts
             */
            lengthMaxMs: number;
            /**
             * Format: int32
             * @description Range over the charts
             */
            lengthMinMs: number;
            /**
             * Format: double
             * @description Range of the [ratings](/docs/rating) of the charts, if any has one; only in lists with [`include=rating`](/docs/api/chartset-list)
             */
            ratingMax?: number;
            /**
             * Format: double
             * @description Range of the [ratings](/docs/rating) of the charts, if any has one; only in lists with [`include=rating`](/docs/api/chartset-list)
             */
            ratingMin?: number;
            /** @description `alphaSet` or `betaPack`; omitted without a public source */
            sourceKind?: components["schemas"]["SourceKind"];
            /** @description Where the set can be downloaded */
            sources: components["schemas"]["Source"][];
            /** @description The tags of the charts, distinct, in order of appearance */
            tags: string[];
            /** @description Of the first chart in the order of the [detail](/docs/api/chartset-detail) */
            title: string;
            /**
             * Format: int64
             * @description When the chartset last changed in the index; only with [`include=updated`](/docs/api/extension-fields)
             */
            updatedAtMs?: number;
        };
        ChartsetId: string;
        ChartsetList: {
            /** @description Only if a part of `query` looks like a filter but is none: `token`, the part as it was typed, and `reason`, what is wrong. See [Typed query](/docs/api/chartset-list#typed-query) ([extension](/docs/api/extensions)) */
            hints?: {
                /** @description What is wrong, and what the filter accepts. */
                reason: string;
                /** @description The part, as it was typed. */
                token: string;
            }[];
            /** @description The chartsets of the page */
            items: components["schemas"]["Chartset"][];
            /** @description Only in a response to `after`, and not on the last page: the [cursor](/docs/api/chartset-list#cursor) of the next page ([extension](/docs/api/extensions)) */
            nextAfter?: string;
            /**
             * Format: int32
             * @description The page and page size that were used
             */
            page: number;
            /**
             * Format: int32
             * @description The page and page size that were used
             */
            perPage: number;
            /**
             * Format: int64
             * @description Number of chartsets that match, exact at any size. While the index changes it may be up to 30 seconds older than `items`, but it never contradicts them
             */
            total: number;
        };
        ChartsetRecord: {
            /** @description The charts, in the order of the [detail](/docs/api/chartset-detail); at least one */
            charts: components["schemas"]["ChartRecord"][];
            /** @description The set or pack that the charts were read from: `kind` and `ref` of a [source](/docs/records#sources) whose confidence is `exact` */
            exactSource?: components["schemas"]["PublicSource"];
            /** @description Id of the chartset */
            id: components["schemas"]["ChartsetId"];
            /**
             * Format: int64
             * @description When the chartset last changed in the index; [lists](/docs/api/chartset-list) are sorted by it
             */
            updatedAtMs: number;
        };
        /**
         * @default updated
         * @enum {string}
         */
        ChartsetSort: "updated" | "title" | "artist" | "bpm" | "mainBpm" | "length" | "density" | "rating" | "notes" | "relevance";
        ChartVariant: {
            /** @description The chartsets that contain the chart, up to 8: those with the sources of the chart first, in their order */
            chartsets?: components["schemas"]["ChartOccurrence"][];
            /** @description As in its own lookup */
            difficulty: string;
            /** @description Its note hash */
            hash: components["schemas"]["NoteHash"];
            /**
             * Format: int32
             * @description Its length
             */
            lengthMs: number;
            /**
             * Format: double
             * @description Length of the requested chart divided by its length: 1.1 if it is 10 % faster; only if the requested chart is known
             */
            rate?: number;
            /** @description Where it can be downloaded */
            sources: components["schemas"]["Source"][];
            /** @description `uniform` if one rate fits every row within 5 ms, else `differs`; only if the requested chart is known and the times of both can be compared */
            timing?: components["schemas"]["VariantTiming"];
            /** @description As in its own lookup */
            title: string;
        };
        /**
         * @description How certain it is that a source has a chart. `Exact` sorts before `Declared`.
         * @enum {string}
         */
        Confidence: "exact" | "declared";
        ExportedFile: {
            /** @description Its BLAKE3 digest, 64 lower-case hexadecimal characters */
            blake3: components["schemas"]["FileDigest"];
            /**
             * Format: int64
             * @description Its size
             */
            bytes: number;
            /** @description Name of a file */
            name: components["schemas"]["ExportFile"];
        };
        /**
         * @example chartsets.ndjson.zst
         * @example rox.tar
         * @example catalogue.sqlite.zst
         * @example catalogue.parquet
         */
        ExportFile: string;
        ExportManifest: {
            /**
             * Format: int64
             * @description Number of distinct charts
             */
            charts: number;
            /**
             * Format: int64
             * @description Number of chartsets
             */
            chartsets: number;
            /** @description How to reach the operator, an e-mail address or a URL; omitted if the operator names none */
            contact?: string;
            /**
             * Format: int64
             * @description When the snapshot was taken
             */
            exportedAtMs: number;
            /** @description The other files, apart from the signature */
            files: components["schemas"]["ExportedFile"][];
            /**
             * Format: int32
             * @description Version of the format of the files, 1
             */
            formatVersion: number;
            /** @description The licence of the records, an [SPDX identifier](https://spdx.org/licenses/) or a URL; omitted if the operator names none */
            license?: string;
            /** @description The [lineage](/docs/change-feed#lineage) of `sequence`; omitted by earlier versions of the program */
            lineage?: components["schemas"]["Lineage"];
            /**
             * Format: int64
             * @description Number of charts of the index that are left out, since the index has lost their ROX files; omitted if there is none
             */
            lostCharts?: number;
            /**
             * Format: int64
             * @description The last sequence of the [change feed](/docs/change-feed) that the export includes
             */
            sequence: number;
            /** @description URL of the terms of use; omitted if there are none */
            terms?: string;
        };
        FileDigest: string;
        FileMd5: string;
        KeyCount: number;
        KnownBatchItem: {
            /**
             * Format: int64
             * @description Its id in the first game
             */
            alphaBeatmapId?: number;
            /** @description The chart */
            chart: components["schemas"]["Chart"];
            /** @description The requested hash */
            chartHash: components["schemas"]["NoteHash"];
            /** @description The chartsets that contain the chart, up to 8: those with the sources of the chart first, in their order */
            chartsets?: components["schemas"]["ChartOccurrence"][];
            /** @description MD5 digest of its `.osu` or `.qua` file, 32 lower-case hexadecimal characters: what these games know it by. A chart stays known by the digests of earlier files */
            md5?: components["schemas"]["FileMd5"];
            /** @description Where the chart can be downloaded; empty if it is known and has no source */
            sources: components["schemas"]["Source"][];
            /**
             * @description `known` or `unknown`
             * @enum {string}
             */
            status: "known";
            /**
             * Format: int32
             * @description How long the response may be cached, in milliseconds: 300000
             */
            ttlMs: number;
            /** @description Up to 20 other charts with the same variant, in the order of their hashes */
            variants?: components["schemas"]["ChartVariant"][];
            /**
             * Format: int64
             * @description The number of these charts, exact up to 1,000
             */
            variantsTotal?: number;
        };
        KnownChart: {
            /** @description The chart */
            chart: components["schemas"]["Chart"];
            /** @description The requested hash */
            chartHash: components["schemas"]["NoteHash"];
            /** @description The chartsets that contain the chart, up to 8: those with the sources of the chart first, in their order */
            chartsets?: components["schemas"]["ChartOccurrence"][];
            /** @description Where the chart can be downloaded; empty if it is known and has no source */
            sources: components["schemas"]["Source"][];
            /**
             * @description `known` or `unknown`
             * @enum {string}
             */
            status: "known";
            /**
             * Format: int32
             * @description How long the response may be cached, in milliseconds: 300000
             */
            ttlMs: number;
            /** @description Up to 20 other charts with the same variant, in the order of their hashes */
            variants?: components["schemas"]["ChartVariant"][];
            /**
             * Format: int64
             * @description The number of these charts, exact up to 1,000
             */
            variantsTotal?: number;
        };
        Lineage: string;
        NoteHash: string;
        PatternRows: {
            /** @description The share of the rows of this class, 1 to 100 */
            chordjack?: number;
            /** @description The share of the rows of this class, 1 to 100 */
            chordstream?: number;
            /** @description The share of the rows of this class, 1 to 100 */
            handstream?: number;
            /** @description The share of the rows of this class, 1 to 100 */
            jack?: number;
            /** @description The share of the rows of this class, 1 to 100 */
            jumpstream?: number;
            /** @description The share of the rows of this class, 1 to 100 */
            jumptrill?: number;
            /** @description The share of the rows of this class, 1 to 100 */
            longjack?: number;
            /** @description The share of the rows of this class, 1 to 100 */
            stream?: number;
            /** @description The share of the rows of this class, 1 to 100 */
            trill?: number;
        };
        Patterns: {
            /**
             * Format: int32
             * @description The share of the notes that are long notes
             */
            lnNotes: number;
            /**
             * Format: int32
             * @description The share of the time in which a long note is held
             */
            lnTime: number;
            /** @description The shares of the rows of each class; a class without rows is omitted */
            rows: components["schemas"]["PatternRows"];
            /** @description How fast the rows are */
            rowsPerSecond: components["schemas"]["RowsPerSecond"];
            /**
             * Format: int32
             * @description Version of the patterns: 1
             */
            version: number;
        };
        Problem: {
            /** @description Describes this error, without internals of the service */
            detail: string;
            /** @description The parameter at fault; only where there is one */
            parameter?: string;
            /**
             * Format: int32
             * @description Status code
             */
            status: number;
            /** @description Describes the kind of error */
            title: string;
            /**
             * Format: uri-reference
             * @description Identifies the kind of error; relative to the base address
             */
            type: string;
        };
        PublicSource: {
            /** @description `alphaSet`: a set of the first game. `betaPack`: a pack of the second game. Ignore kinds that you do not know */
            kind: components["schemas"]["SourceKind"];
            /** @description The set id or pack id in decimal, never a URL */
            ref: components["schemas"]["SourceRef"];
        };
        Rating: {
            /** @description `alphaStars`: that of the first game */
            algorithm: string;
            /**
             * Format: double
             * @description 0 to 15, with two decimals
             */
            value: number;
            /**
             * Format: int32
             * @description Version of the algorithm: 1
             */
            version: number;
        };
        RowsPerSecond: {
            /**
             * Format: double
             * @description The median of the rows per second, with two decimals
             */
            median: number;
            /**
             * Format: double
             * @description The 90th percentile of the rows per second, with two decimals
             */
            p90: number;
        };
        /** @enum {string} */
        SortOrder: "asc" | "desc";
        Source: {
            /**
             * Format: int64
             * @description When the indexer last saw the chart there
             */
            checkedAtMs: number;
            /** @description `exact`: the chart was read from that set or pack. `declared`: only the metadata of the chart names it */
            confidence: components["schemas"]["Confidence"];
            /** @description `alphaSet`: a set of the first game. `betaPack`: a pack of the second game. Ignore kinds that you do not know */
            kind: components["schemas"]["SourceKind"];
            /** @description The set id or pack id in decimal, never a URL */
            ref: components["schemas"]["SourceRef"];
            /** @description The address of the page of the set or pack; only with [`include=links`](/docs/api/extension-fields) */
            url?: string;
        };
        /** @enum {string} */
        SourceFilter: "alphaSet" | "betaPack";
        /**
         * @example alphaSet
         * @example betaPack
         */
        SourceKind: string;
        SourceRef: string;
        UnknownBatchItem: {
            /**
             * Format: int64
             * @description Its id in the first game
             */
            alphaBeatmapId?: number;
            /** @description The requested hash */
            chartHash?: components["schemas"]["NoteHash"];
            /** @description MD5 digest of its `.osu` or `.qua` file, 32 lower-case hexadecimal characters: what these games know it by. A chart stays known by the digests of earlier files */
            md5?: components["schemas"]["FileMd5"];
            /**
             * @description `known` or `unknown`
             * @enum {string}
             */
            status: "unknown";
            /**
             * Format: int32
             * @description How long the response may be cached, in milliseconds: 300000
             */
            ttlMs: number;
            /** @description Up to 20 other charts with the same variant, in the order of their hashes */
            variants?: components["schemas"]["ChartVariant"][];
            /**
             * Format: int64
             * @description The number of these charts, exact up to 1,000
             */
            variantsTotal?: number;
        };
        UnknownChart: {
            /** @description The requested hash */
            chartHash: components["schemas"]["NoteHash"];
            /**
             * @description `known` or `unknown`
             * @enum {string}
             */
            status: "unknown";
            /**
             * Format: int32
             * @description How long the response may be cached, in milliseconds: 300000
             */
            ttlMs: number;
            /** @description Up to 20 other charts with the same variant, in the order of their hashes */
            variants?: components["schemas"]["ChartVariant"][];
            /**
             * Format: int64
             * @description The number of these charts, exact up to 1,000
             */
            variantsTotal?: number;
        };
        Variant: string;
        VariantCharts: {
            /** @description Up to 20 charts, as in `variants`, without `rate` and `timing` */
            items: components["schemas"]["ChartVariant"][];
            /**
             * Format: int64
             * @description The number of charts, exact up to 1,000
             */
            total: number;
            /**
             * Format: int32
             * @description How long the response may be cached, in milliseconds: 300000
             */
            ttlMs: number;
            /** @description The requested variant */
            variant: components["schemas"]["Variant"];
            /**
             * Format: int32
             * @description Its version: 1
             */
            variantVersion: number;
        };
        /**
         * @description How the times of two charts with the same rows compare.
         * @enum {string}
         */
        VariantTiming: "uniform" | "differs";
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listChanges: {
        parameters: {
            query?: {
                /** @description Whole number: `next` of the page before, or the sequence of an [export](/docs/api/exports). Changes with a greater sequence are listed. Default: 0 */
                after?: number;
                /**
                 * @description Whole number, up to 1000: the maximum number of changes. Default: 100
                 * @example 2
                 */
                limit?: number;
                /** @description The `lineage` of the page or export that `after` is from. If it is not that of the index, the response is 410 */
                lineage?: string;
                /** @description Whole number of seconds, up to 60: how long to wait for a change if there is none after `after`. Default: 0 */
                wait?: number;
            };
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The changes that follow */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "hasMore": true,
                     *       "items": [
                     *         {
                     *           "change": "added",
                     *           "changedAtMs": 1790000000000,
                     *           "chartset": {
                     *             "charts": [
                     *               {
                     *                 "alphaBeatmapId": 9001061,
                     *                 "artist": "하늘연못",
                     *                 "artistRomanised": "Haneul Yeonmot",
                     *                 "bpmMain": 168,
                     *                 "bpmMax": 168,
                     *                 "bpmMin": 168,
                     *                 "creator": "baram",
                     *                 "declaredSource": {
                     *                   "kind": "alphaSet",
                     *                   "ref": "900106"
                     *                 },
                     *                 "densityAvg": 4.8,
                     *                 "densityPeak": 7,
                     *                 "difficulty": "7K 은하",
                     *                 "hash": "7f8a1d8ecb3387ffdad71439f0503d8ec1a529df38a7648e14a055d511ba79b1",
                     *                 "keys": 7,
                     *                 "lengthMs": 11250,
                     *                 "lns": 43,
                     *                 "md5s": [
                     *                   "3666322697b6e818a6ec5a9d15a500c6"
                     *                 ],
                     *                 "noteHashVersion": 1,
                     *                 "notes": 54,
                     *                 "patterns": {
                     *                   "lnNotes": 80,
                     *                   "lnTime": 95,
                     *                   "rows": {
                     *                     "chordstream": 16,
                     *                     "jack": 2,
                     *                     "stream": 39
                     *                   },
                     *                   "rowsPerSecond": {
                     *                     "median": 4,
                     *                     "p90": 5
                     *                   },
                     *                   "version": 1
                     *                 },
                     *                 "rating": {
                     *                   "algorithm": "alphaStars",
                     *                   "value": 1.83,
                     *                   "version": 1
                     *                 },
                     *                 "roxBytes": 444,
                     *                 "tags": [
                     *                   "korean",
                     *                   "ballad",
                     *                   "starlight"
                     *                 ],
                     *                 "title": "별빛 정원",
                     *                 "titleRomanised": "Byeolbit Jeongwon",
                     *                 "variant": "08c944b6b9a8dfe3c89bf3160096178c327d92d2aab7413efd694402cb3a224a",
                     *                 "variantVersion": 1
                     *               }
                     *             ],
                     *             "exactSource": {
                     *               "kind": "alphaSet",
                     *               "ref": "900106"
                     *             },
                     *             "id": "3e09baabfa05e929",
                     *             "updatedAtMs": 1790000000000
                     *           },
                     *           "id": "3e09baabfa05e929",
                     *           "kind": "chartset",
                     *           "sequence": 1
                     *         },
                     *         {
                     *           "change": "added",
                     *           "changedAtMs": 1790000000000,
                     *           "chartHash": "7f8a1d8ecb3387ffdad71439f0503d8ec1a529df38a7648e14a055d511ba79b1",
                     *           "kind": "chart",
                     *           "sequence": 2
                     *         }
                     *       ],
                     *       "lineage": "5f0e3a1c9d2b7468",
                     *       "next": 2
                     *     }
                     */
                    "application/json": components["schemas"]["Changes"];
                };
            };
        };
    };
    lookUpChart: {
        parameters: {
            query?: {
                /**
                 * @description `variants`, `rating`, `patterns`, `chartsets`, `links`, separated by commas: [extension fields](/docs/api/extension-fields) ([extension](/docs/api/extensions))
                 * @example [
                 *       "patterns",
                 *       "chartsets",
                 *       "links"
                 *     ]
                 */
                include?: ("variants" | "rating" | "patterns" | "chartsets" | "links")[];
                /** @description A [variant](/docs/variant), used with `include=variants` ([extension](/docs/api/extensions)) */
                variant?: string;
            };
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
            };
            path: {
                /**
                 * @description Note hash of the chart
                 * @example ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb
                 */
                hash: components["schemas"]["NoteHash"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The chart is known, or unknown to the index */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "chart": {
                     *         "artist": "Paper Lanterns",
                     *         "bpmMain": 128,
                     *         "bpmMax": 128,
                     *         "bpmMin": 128,
                     *         "creator": "mossgrove",
                     *         "densityAvg": 2.477,
                     *         "densityPeak": 5,
                     *         "difficulty": "4K Normal",
                     *         "hash": "ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb",
                     *         "keys": 4,
                     *         "lengthMs": 14531,
                     *         "lns": 4,
                     *         "noteHashVersion": 1,
                     *         "notes": 36,
                     *         "roxBytes": 311,
                     *         "title": "Harbour Lights"
                     *       },
                     *       "chartHash": "ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb",
                     *       "sources": [
                     *         {
                     *           "checkedAtMs": 1790000000000,
                     *           "confidence": "exact",
                     *           "kind": "alphaSet",
                     *           "ref": "900101"
                     *         },
                     *         {
                     *           "checkedAtMs": 1790000000000,
                     *           "confidence": "exact",
                     *           "kind": "alphaSet",
                     *           "ref": "900105"
                     *         }
                     *       ],
                     *       "status": "known",
                     *       "ttlMs": 300000
                     *     }
                     */
                    "application/json": components["schemas"]["ChartLookup"];
                };
            };
        };
    };
    getChartPreview: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
            };
            path: {
                /**
                 * @description Note hash of the chart
                 * @example ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb
                 */
                hash: components["schemas"]["NoteHash"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The notes and the timing of the chart */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "columns": [
                     *         [
                     *           2344,
                     *           469,
                     *           468,
                     *           2344,
                     *           2344,
                     *           3750,
                     *           469,
                     *           468,
                     *           1407
                     *         ],
                     *         [
                     *           1406,
                     *           469,
                     *           1406,
                     *           -469,
                     *           3282,
                     *           937,
                     *           1406,
                     *           938,
                     *           469,
                     *           1406,
                     *           1875
                     *         ],
                     *         [
                     *           0,
                     *           469,
                     *           3750,
                     *           937,
                     *           -352,
                     *           7969,
                     *           1406
                     *         ],
                     *         [
                     *           938,
                     *           937,
                     *           1875,
                     *           938,
                     *           -585,
                     *           1406,
                     *           937,
                     *           -469,
                     *           1407,
                     *           937,
                     *           1406,
                     *           469,
                     *           938
                     *         ]
                     *       ],
                     *       "keys": 4,
                     *       "lengthMs": 14531,
                     *       "scroll": [],
                     *       "timing": [
                     *         [
                     *           0,
                     *           128
                     *         ]
                     *       ],
                     *       "version": 1
                     *     }
                     */
                    "application/json": components["schemas"]["ChartPreview"];
                };
            };
        };
    };
    getRoxFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
            };
            path: {
                /**
                 * @description Note hash of the chart
                 * @example ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb
                 */
                hash: components["schemas"]["NoteHash"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The ROX file */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
        };
    };
    goToHashFilter: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is at `Location`, to which HTTP clients go on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
        };
    };
    getHashFilter: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
            };
            path: {
                /**
                 * @description Sequence of the filter in the change feed
                 * @example 104
                 */
                sequence: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The filter */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
        };
    };
    lookUpCharts: {
        parameters: {
            query?: {
                /** @description `variants`, `rating`, `patterns`, `chartsets`, `links`, separated by commas: [extension fields](/docs/api/extension-fields) of each item */
                include?: ("variants" | "rating" | "patterns" | "chartsets" | "links")[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "charts": [
                 *         {
                 *           "md5": "00000000000000000000000000000000"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["BatchLookupRequest"];
            };
        };
        responses: {
            /** @description The items are in the order of the hashes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "md5": "00000000000000000000000000000000",
                     *           "status": "unknown",
                     *           "ttlMs": 300000
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["BatchLookup"];
                };
            };
        };
    };
    listChartsets: {
        parameters: {
            query?: {
                /** @description `start`, or the `nextAfter` of a response: a [cursor](/docs/api/chartset-list#cursor) instead of `page` ([extension](/docs/api/extensions)) */
                after?: string;
                /** @description Decimal numbers, also with an exponent (`1.745e2`). The BPM range of the set overlaps this range. Default: unbounded */
                bpmMax?: number;
                /** @description Decimal numbers, also with an exponent (`1.745e2`). The BPM range of the set overlaps this range. Default: unbounded */
                bpmMin?: number;
                /** @description Part of a creator's name, case-insensitive, at most 200 characters */
                creator?: string;
                /** @description Decimal number. The peak density of [one chart](/docs/api/chartset-list#filters-for-one-chart) is at most this ([extension](/docs/api/extensions)) */
                densityMax?: number;
                /** @description Decimal number. `densityMax` of the set is at least this */
                densityMin?: number;
                /** @description `rating`, `updated`, separated by commas. With `rating` the items have `ratingMin` and `ratingMax`, those of their charts, if any has a rating; with `updated` they have `updatedAtMs` ([extension](/docs/api/extensions)) */
                include?: ("rating" | "updated")[];
                /**
                 * @description Key counts from 4 to 7, separated by commas. Matches sets that have any of them. Default: all
                 * @example [
                 *       4
                 *     ]
                 */
                keys?: number[];
                /** @description Decimal seconds. The length range of the set overlaps this range. Default: unbounded */
                lengthMax?: number;
                /** @description Decimal seconds. The length range of the set overlaps this range. Default: unbounded */
                lengthMin?: number;
                /** @description Percent. The share of long notes of [one chart](/docs/api/chartset-list#filters-for-one-chart), rounded to whole percent, is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                lnMax?: number;
                /** @description Percent. The share of long notes of [one chart](/docs/api/chartset-list#filters-for-one-chart), rounded to whole percent, is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                lnMin?: number;
                /** @description Decimal numbers. The main BPM, `bpmMain`, of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                mainBpmMax?: number;
                /** @description Decimal numbers. The main BPM, `bpmMain`, of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                mainBpmMin?: number;
                /** @description `chart`: all filters are met by [one chart](/docs/api/chartset-list#filters-for-one-chart) ([extension](/docs/api/extensions)) */
                match?: "chart";
                /** @description The number of notes of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                notesMax?: number;
                /** @description The number of notes of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                notesMin?: number;
                /** @description `asc` or `desc` ([extension](/docs/api/extensions)). Default: `asc` for `title` and `artist`, else `desc` */
                order?: components["schemas"]["SortOrder"];
                /** @description Id of a pack of the second game: chartsets whose source it is ([extension](/docs/api/extensions)) */
                pack?: number;
                /** @description Whole number, from 1. Default: 1 */
                page?: number;
                /** @description [Patterns](/docs/patterns) with their least share in whole percent, such as `stream:50,jack:10`, that [one chart](/docs/api/chartset-list#filters-for-one-chart) has ([extension](/docs/api/extensions)) */
                pattern?: string;
                /**
                 * @description Whole number, 1 to 60. Default: 30
                 * @example 1
                 */
                perPage?: number;
                /**
                 * @description Text, at most 200 characters. See [Text search](/docs/api/chartset-list#text-search)
                 * @example harbour
                 */
                q?: string;
                /** @description Words and filters in one text, at most 200 characters. See [Typed query](/docs/api/chartset-list#typed-query) ([extension](/docs/api/extensions)) */
                query?: string;
                /** @description Decimal numbers. The [rating](/docs/rating) of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                ratingMax?: number;
                /** @description Decimal numbers. The [rating](/docs/rating) of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                ratingMin?: number;
                /** @description Id of a set of the first game: chartsets whose source it is ([extension](/docs/api/extensions)) */
                set?: number;
                /**
                 * @description `updated`, `title`, `artist`, `bpm`, `length`, `density`; `mainBpm`, `rating`, `notes`, `relevance` ([extensions](/docs/api/extensions)). Default: `updated`
                 * @example density
                 */
                sort?: components["schemas"]["ChartsetSort"];
                /** @description `alphaSet` or `betaPack`. Default: both */
                source?: components["schemas"]["SourceFilter"];
            };
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of chartsets */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "artist": "Paper Lanterns",
                     *           "bpmMax": 128,
                     *           "bpmMin": 128,
                     *           "chartCount": 3,
                     *           "creator": "mossgrove, tin owl",
                     *           "densityMax": 11,
                     *           "downloadUrl": "/go/chartset/21642f9846d39260",
                     *           "id": "21642f9846d39260",
                     *           "keys": [
                     *             4
                     *           ],
                     *           "lengthMaxMs": 14883,
                     *           "lengthMinMs": 14531,
                     *           "sourceKind": "alphaSet",
                     *           "title": "Harbour Lights"
                     *         }
                     *       ],
                     *       "page": 1,
                     *       "perPage": 1,
                     *       "total": 2
                     *     }
                     */
                    "application/json": components["schemas"]["ChartsetList"];
                };
            };
        };
    };
    getChartset: {
        parameters: {
            query?: {
                /** @description `variants`, `rating`, `patterns`, `chartsets`, `links`, `updated`, separated by commas: [extension fields](/docs/api/extension-fields) ([extension](/docs/api/extensions)) */
                include?: ("variants" | "rating" | "patterns" | "chartsets" | "links" | "updated")[];
            };
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
            };
            path: {
                /**
                 * @description Id of the chartset
                 * @example 3e09baabfa05e929
                 */
                id: components["schemas"]["ChartsetId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The chartset with its charts */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "artist": "하늘연못",
                     *       "bpmMax": 168,
                     *       "bpmMin": 168,
                     *       "chartCount": 1,
                     *       "charts": [
                     *         {
                     *           "alphaBeatmapId": 9001061,
                     *           "chart": {
                     *             "artist": "하늘연못",
                     *             "bpmMain": 168,
                     *             "bpmMax": 168,
                     *             "bpmMin": 168,
                     *             "creator": "baram",
                     *             "densityAvg": 4.8,
                     *             "densityPeak": 7,
                     *             "difficulty": "7K 은하",
                     *             "hash": "7f8a1d8ecb3387ffdad71439f0503d8ec1a529df38a7648e14a055d511ba79b1",
                     *             "keys": 7,
                     *             "lengthMs": 11250,
                     *             "lns": 43,
                     *             "noteHashVersion": 1,
                     *             "notes": 54,
                     *             "roxBytes": 444,
                     *             "title": "별빛 정원"
                     *           },
                     *           "difficulty": "7K 은하"
                     *         }
                     *       ],
                     *       "creator": "baram",
                     *       "densityMax": 7,
                     *       "downloadUrl": "/go/chartset/3e09baabfa05e929",
                     *       "id": "3e09baabfa05e929",
                     *       "keys": [
                     *         7
                     *       ],
                     *       "lengthMaxMs": 11250,
                     *       "lengthMinMs": 11250,
                     *       "sourceKind": "alphaSet",
                     *       "sources": [
                     *         {
                     *           "checkedAtMs": 1790000000000,
                     *           "confidence": "exact",
                     *           "kind": "alphaSet",
                     *           "ref": "900106"
                     *         }
                     *       ],
                     *       "tags": [
                     *         "korean",
                     *         "ballad",
                     *         "starlight"
                     *       ],
                     *       "title": "별빛 정원"
                     *     }
                     */
                    "application/json": components["schemas"]["ChartsetDetail"];
                };
            };
        };
    };
    getExportedParquet: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
                /** @description The tag of the file of which the client has a part */
                "If-Range"?: string;
                /** @description One range of bytes, such as `bytes=1000-` */
                Range?: string;
            };
            path: {
                /** @description Name of the export, such as `20261122T182049Z-12345` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.apache.parquet": string;
                };
            };
        };
    };
    getExportedCatalogue: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
                /** @description The tag of the file of which the client has a part */
                "If-Range"?: string;
                /** @description One range of bytes, such as `bytes=1000-` */
                Range?: string;
            };
            path: {
                /** @description Name of the export, such as `20261122T182049Z-12345` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/zstd": string;
                };
            };
        };
    };
    getExportedChartsets: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
                /** @description The tag of the file of which the client has a part */
                "If-Range"?: string;
                /** @description One range of bytes, such as `bytes=1000-` */
                Range?: string;
            };
            path: {
                /** @description Name of the export, such as `20261122T182049Z-12345` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/zstd": string;
                };
            };
        };
    };
    getExportManifest: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Name of the export, such as `20261122T182049Z-12345` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The manifest */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExportManifest"];
                };
            };
        };
    };
    getExportSignature: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Name of the export, such as `20261122T182049Z-12345` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The signature of the manifest, as a file of minisign */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    getExportedRoxFiles: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
                /** @description The tag of the file of which the client has a part */
                "If-Range"?: string;
                /** @description One range of bytes, such as `bytes=1000-` */
                Range?: string;
            };
            path: {
                /** @description Name of the export, such as `20261122T182049Z-12345` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-tar": string;
                };
            };
        };
    };
    getLatestExport: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is at `Location`, to which HTTP clients go on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExportManifest"];
                };
            };
        };
    };
    chooseChartset: {
        parameters: {
            query?: {
                /** @description Decimal numbers, also with an exponent (`1.745e2`). The BPM range of the set overlaps this range. Default: unbounded */
                bpmMax?: number;
                /** @description Decimal numbers, also with an exponent (`1.745e2`). The BPM range of the set overlaps this range. Default: unbounded */
                bpmMin?: number;
                /** @description Part of a creator's name, case-insensitive, at most 200 characters */
                creator?: string;
                /** @description Decimal number. The peak density of [one chart](/docs/api/chartset-list#filters-for-one-chart) is at most this ([extension](/docs/api/extensions)) */
                densityMax?: number;
                /** @description Decimal number. `densityMax` of the set is at least this */
                densityMin?: number;
                /** @description Key counts from 4 to 7, separated by commas. Matches sets that have any of them. Default: all */
                keys?: number[];
                /** @description Decimal seconds. The length range of the set overlaps this range. Default: unbounded */
                lengthMax?: number;
                /** @description Decimal seconds. The length range of the set overlaps this range. Default: unbounded */
                lengthMin?: number;
                /** @description Percent. The share of long notes of [one chart](/docs/api/chartset-list#filters-for-one-chart), rounded to whole percent, is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                lnMax?: number;
                /** @description Percent. The share of long notes of [one chart](/docs/api/chartset-list#filters-for-one-chart), rounded to whole percent, is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                lnMin?: number;
                /** @description Decimal numbers. The main BPM, `bpmMain`, of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                mainBpmMax?: number;
                /** @description Decimal numbers. The main BPM, `bpmMain`, of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                mainBpmMin?: number;
                /** @description `chart`: all filters are met by [one chart](/docs/api/chartset-list#filters-for-one-chart) ([extension](/docs/api/extensions)) */
                match?: "chart";
                /** @description The number of notes of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                notesMax?: number;
                /** @description The number of notes of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                notesMin?: number;
                /** @description Id of a pack of the second game: chartsets whose source it is ([extension](/docs/api/extensions)) */
                pack?: number;
                /** @description [Patterns](/docs/patterns) with their least share in whole percent, such as `stream:50,jack:10`, that [one chart](/docs/api/chartset-list#filters-for-one-chart) has ([extension](/docs/api/extensions)) */
                pattern?: string;
                /** @description Text, at most 200 characters. See [Text search](/docs/api/chartset-list#text-search) */
                q?: string;
                /**
                 * @description Words and filters in one text, at most 200 characters. See [Typed query](/docs/api/chartset-list#typed-query) ([extension](/docs/api/extensions))
                 * @example title:Byeolbit
                 */
                query?: string;
                /** @description Decimal numbers. The [rating](/docs/rating) of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                ratingMax?: number;
                /** @description Decimal numbers. The [rating](/docs/rating) of [one chart](/docs/api/chartset-list#filters-for-one-chart) is in this range ([extension](/docs/api/extensions)). Default: unbounded */
                ratingMin?: number;
                /** @description Id of a set of the first game: chartsets whose source it is ([extension](/docs/api/extensions)) */
                set?: number;
                /** @description `alphaSet` or `betaPack`. Default: both */
                source?: components["schemas"]["SourceFilter"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is at `Location`, to which HTTP clients go on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChartsetDetail"];
                };
            };
        };
    };
    listVariantCharts: {
        parameters: {
            query?: {
                /** @description `chartsets`, `links`, separated by commas: [extension fields](/docs/api/extension-fields) of each item */
                include?: ("chartsets" | "links")[];
            };
            header?: {
                /** @description Entity tags of responses that the client has, or `*` */
                "If-None-Match"?: string;
            };
            path: {
                /**
                 * @description A variant: exactly 64 lower-case hexadecimal characters
                 * @example 8a665c6e346d5a595e966275751b720f4c8d61d0fdcf43f9c7a77c5094ea1670
                 */
                variant: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The charts with the variant */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "difficulty": "4K Normal",
                     *           "hash": "ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb",
                     *           "lengthMs": 14531,
                     *           "sources": [
                     *             {
                     *               "checkedAtMs": 1790000000000,
                     *               "confidence": "exact",
                     *               "kind": "alphaSet",
                     *               "ref": "900101"
                     *             },
                     *             {
                     *               "checkedAtMs": 1790000000000,
                     *               "confidence": "exact",
                     *               "kind": "alphaSet",
                     *               "ref": "900105"
                     *             }
                     *           ],
                     *           "title": "Harbour Lights"
                     *         }
                     *       ],
                     *       "total": 1,
                     *       "ttlMs": 300000,
                     *       "variant": "8a665c6e346d5a595e966275751b720f4c8d61d0fdcf43f9c7a77c5094ea1670",
                     *       "variantVersion": 1
                     *     }
                     */
                    "application/json": components["schemas"]["VariantCharts"];
                };
            };
        };
    };
    goToChartSource: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Note hash of the chart
                 * @example ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb
                 */
                hash: components["schemas"]["NoteHash"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
    goToSource: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Id of the chartset
                 * @example 3e09baabfa05e929
                 */
                id: components["schemas"]["ChartsetId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: never;
    };
}
