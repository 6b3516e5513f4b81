"""What JSON Schema cannot say of parameters (docs/api.md, "Chartset list" and "Changes")."""

import re

import schemathesis


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@schemathesis.hook
def map_query(context, query):
    """A lower bound above its upper bound is refused, a sequence above the last one of the sample library is 410, and a
    cursor is one of a response."""
    for lower, upper in (("bpmMin", "bpmMax"), ("lengthMin", "lengthMax")):
        bounds = [(query or {}).get(name) for name in (lower, upper)]
        if all(map(is_number, bounds)):
            query[lower], query[upper] = sorted(bounds)
    after = (query or {}).get("after")
    if is_number(after):
        query["after"] = int(after) % 10
    if isinstance(after, str) and re.fullmatch("[A-Za-z0-9_-]+", after):
        query["after"] = "start"
    return query


@schemathesis.hook
def before_call(context, case, **kwargs):
    """A valid request has a page or a cursor, not both. Examples do not pass through the hook above."""
    if case.path == "/api/chartsets" and "after" in (case.query or {}) and case.meta.generation.mode.is_positive:
        case.query.pop("page", None)


@schemathesis.hook
def filter_query(context, query):
    """An empty value counts as absent, also of a parameter that is no text: it is not an error."""
    others = [value for name, value in (query or {}).items() if name not in ("q", "creator")]
    return not any(isinstance(value, str) and not value.strip() for value in others)
