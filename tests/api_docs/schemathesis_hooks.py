"""What JSON Schema cannot say of the parameters: a lower bound that is above its upper bound is refused."""

import schemathesis


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@schemathesis.hook
def map_query(context, query):
    for lower, upper in (("bpmMin", "bpmMax"), ("lengthMin", "lengthMax")):
        bounds = [(query or {}).get(name) for name in (lower, upper)]
        if all(map(is_number, bounds)):
            query[lower], query[upper] = sorted(bounds)
    return query
