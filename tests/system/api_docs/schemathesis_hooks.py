"""What JSON Schema cannot say of parameters (docs/api.md, "Chartset list" and "Changes")."""

import re

import schemathesis


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@schemathesis.hook
def map_query(context, query):
    """A lower bound above its upper bound is refused, a sequence above the last one of the sample library is 410, and a
    cursor is one of a response, without a page."""
    for lower, upper in (("bpmMin", "bpmMax"), ("lengthMin", "lengthMax")):
        bounds = [(query or {}).get(name) for name in (lower, upper)]
        if all(map(is_number, bounds)):
            query[lower], query[upper] = sorted(bounds)
    if is_number((query or {}).get("after")):
        query["after"] = int(query["after"]) % 10
    if re.fullmatch("[A-Za-z0-9_-]+", str((query or {}).get("after", ""))) and isinstance(query["after"], str):
        query["after"] = "start"
        query.pop("page", None)
    return query


@schemathesis.hook
def filter_query(context, query):
    """An empty value counts as absent, also of a parameter that is no text: it is not an error."""
    others = [value for name, value in (query or {}).items() if name not in ("q", "creator")]
    return not any(isinstance(value, str) and not value.strip() for value in others)
