"""What the document does not say of requests (docs/api.md, "Chartset list", "Changes" and "Batch lookup")."""

import re

import schemathesis


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """A sequence of more than 64 bits is clamped, as other numbers are."""
    for parameter in raw_schema["paths"]["/api/changes"]["get"]["parameters"]:
        parameter["schema"].pop("format", None)


@schemathesis.hook
def map_query(context, query):
    """A lower bound above its upper bound is refused, a sequence above the last one of the sample library is 410, as is
    the lineage of another index, and a cursor is one of a response."""
    for name in ("bpm", "length", "density", "rating", "ln", "notes"):
        lower, upper = f"{name}Min", f"{name}Max"
        bounds = [(query or {}).get(name) for name in (lower, upper)]
        if all(map(is_number, bounds)):
            query[lower], query[upper] = sorted(bounds)
    after = (query or {}).get("after")
    if is_number(after):
        query["after"] = int(after) % 10
    if isinstance(after, str) and re.fullmatch("[A-Za-z0-9_-]+", after):
        query["after"] = "start"
    lineage = (query or {}).get("lineage")
    if isinstance(lineage, str) and re.fullmatch("[0-9a-f]{16}", lineage):
        del query["lineage"]
    return query


@schemathesis.hook
def before_call(context, case, **kwargs):
    """A valid request has a page or a cursor, a set or a pack, filters in one place, charts with one identifier each, and
    the lineage of this index. Examples do not pass through the hook above."""
    if not case.meta.generation.mode.is_positive:
        return
    if case.path == "/api/changes":
        (case.query or {}).pop("lineage", None)
    query = (case.query or {}) if case.path in ("/api/chartsets", "/api/random") else {}
    for name, other in (("after", "page"), ("set", "pack")):
        if name in query:
            query.pop(other, None)
    # Its filters are not to be given by other parameters as well.
    if "query" in query:
        for name in set(query) - {"query", "sort", "order", "page", "perPage", "after", "include"}:
            query.pop(name)
    # A pattern is named once.
    if isinstance(query.get("pattern"), str):
        query["pattern"] = query["pattern"].split(",")[0]
    if case.path == "/api/charts/lookup" and isinstance(case.body, dict):
        # As many as a batch with variants and chartsets may have.
        case.body["charts"] = [with_one_identifier(chart) for chart in case.body.get("charts", [])][:12]
        case.body["hashes"] = case.body.get("hashes", [])[:12] + ["0" * 64]


def with_one_identifier(chart):
    identifiers = [name for name in ("hash", "md5", "alphaBeatmapId") if name in chart]
    others = {name: value for name, value in chart.items() if name not in identifiers[1:]}
    return others if identifiers else {**others, "md5": "0" * 32}


@schemathesis.hook
def filter_query(context, query):
    """An empty value counts as absent, also of a parameter that is no text: it is not an error."""
    others = [value for name, value in (query or {}).items() if name not in ("q", "query", "creator")]
    return not any(isinstance(value, str) and not value.strip() for value in others)
