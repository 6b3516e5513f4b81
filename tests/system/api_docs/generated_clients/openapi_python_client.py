"""Calls every operation of an index with the client of openapi-python-client, and prints their ids."""

import sys

from python_client import Client
from python_client.api.bulk import (
    get_export_manifest,
    get_export_signature,
    get_exported_catalogue,
    get_exported_chartsets,
    get_exported_parquet,
    get_exported_rox_files,
    get_hash_filter,
    get_latest_export,
    go_to_hash_filter,
    list_changes,
)
from python_client.api.charts import (
    get_chart_preview,
    get_rox_file,
    go_to_chart_source,
    list_variant_charts,
    look_up_chart,
    look_up_charts,
)
from python_client.api.chartsets import choose_chartset, get_chartset, go_to_source, list_chartsets
from python_client.models import (
    BatchLookupRequest,
    ChartReference,
    KnownBatchItem,
    KnownChart,
    ListChartsetsIncludeItem,
    LookUpChartIncludeItem,
    Problem,
    UnknownBatchItem,
    UnknownChart,
)

BASE, LIMITED = sys.argv[1:]
HASH = "ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb"
UNKNOWN = "0" * 64
VARIANT = "8a665c6e346d5a595e966275751b720f4c8d61d0fdcf43f9c7a77c5094ea1670"
CHARTSET = "21642f9846d39260"
EXPORT = "20261122T182049Z-1"

# Of httpx, which follows no redirect unless it is told to.
client = Client(base_url=BASE, raise_on_unexpected_status=True, follow_redirects=True)
staying = Client(base_url=BASE, raise_on_unexpected_status=True)
limited = Client(base_url=LIMITED, raise_on_unexpected_status=True)


def called(name, is_expected):
    """Prints the id of an operation or a status, unless the response was another one than expected."""
    if not is_expected:
        raise AssertionError(name)
    print(name)


def charts():
    include = [LookUpChartIncludeItem.VARIANTS, LookUpChartIncludeItem.LINKS]
    lookup = look_up_chart.sync(HASH, client=client, include=include)
    called("lookUpChart", isinstance(lookup, KnownChart) and lookup.chart.notes == 36 and lookup.sources[0].url)
    unknown = look_up_chart.sync(UNKNOWN, client=client)
    assert isinstance(unknown, UnknownChart) and unknown.chart_hash == UNKNOWN
    body = BatchLookupRequest(hashes=[HASH], charts=[ChartReference(md5="0" * 32)])
    known, other = look_up_charts.sync(client=client, body=body).items
    assert isinstance(known, KnownBatchItem) and known.chart.hash_ == HASH
    called("lookUpCharts", isinstance(other, UnknownBatchItem) and other.md5 == "0" * 32)
    called("getChartPreview", get_chart_preview.sync(HASH, client=client).keys == 4)
    called("listVariantCharts", list_variant_charts.sync(VARIANT, client=client).items[0].hash_ == HASH)


def chartsets():
    include = [ListChartsetsIncludeItem.RATING, ListChartsetsIncludeItem.UPDATED]
    page = list_chartsets.sync(client=client, keys=[4, 7], include=include, after="start", per_page=1)
    called("listChartsets", len(page.items) == 1 and page.next_after and page.items[0].updated_at_ms)
    detail = get_chartset.sync(CHARTSET, client=client)
    called("getChartset", HASH in [entry.chart.hash_ for entry in detail.charts])
    called("chooseChartset", 7 in choose_chartset.sync(client=client, query="keys=7").keys)
    for name, redirect in [
        ("goToSource", go_to_source.sync_detailed(CHARTSET, client=staying)),
        ("goToChartSource", go_to_chart_source.sync_detailed(HASH, client=staying)),
    ]:
        called(name, redirect.status_code == 302 and redirect.headers["location"])


def bulk():
    changes = list_changes.sync(client=client, limit=1000)
    called("listChanges", not changes.has_more and any(change.chartset for change in changes.items))
    manifest = get_export_manifest.sync(EXPORT, client=client)
    called("getExportManifest", manifest.charts > 0)
    called("getLatestExport", get_latest_export.sync(client=client) == manifest)
    called("getExportSignature", get_export_signature.sync(EXPORT, client=client) == "a signature\n")


def files():
    called("getRoxFile", get_rox_file.sync(HASH, client=client).payload.read(4) == b"ROX\0")
    newest = go_to_hash_filter.sync(client=client).payload.read()
    redirect = go_to_hash_filter.sync_detailed(client=staying)
    sequence = int(redirect.headers["location"].rsplit("/", 1)[-1])
    called("goToHashFilter", redirect.status_code == 302 and newest)
    called("getHashFilter", get_hash_filter.sync(sequence, client=client).payload.read() == newest)
    for name, operation, start in [
        ("getExportedChartsets", get_exported_chartsets, b"\x28\xb5\x2f\xfd"),
        ("getExportedCatalogue", get_exported_catalogue, b"\x28\xb5\x2f\xfd"),
        ("getExportedRoxFiles", get_exported_rox_files, b""),
    ]:
        content = operation.sync(EXPORT, client=client).payload.read()
        called(name, content.startswith(start) and len(content) > 4)
    part = get_exported_parquet.sync_detailed(EXPORT, client=client, range_="bytes=0-3")
    called("getExportedParquet", part.status_code == 206 and part.parsed.payload.read() == b"PAR1")


def other_statuses():
    tag = look_up_chart.sync_detailed(HASH, client=client).headers["etag"]
    again = look_up_chart.sync_detailed(HASH, client=client, if_none_match=tag)
    called("304", again.status_code == 304)
    malformed = look_up_chart.sync("x", client=client)
    called("400", isinstance(malformed, Problem) and malformed.type_ == "/problems/malformed-hash")
    missing = get_rox_file.sync(UNKNOWN, client=client)
    called("404", isinstance(missing, Problem) and missing.status == 404)
    list_variant_charts.sync(VARIANT, client=limited)
    refused = list_variant_charts.sync_detailed(VARIANT, client=limited)
    called("429", refused.parsed.status == 429 and int(refused.headers["retry-after"]) >= 1)


charts()
chartsets()
bulk()
files()
other_statuses()
