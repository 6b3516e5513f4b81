"""Cache and limits: where responses come from, and which clients are refused."""

from .overview import DECISIONS, REFUSED, first_row
from .panels import NEUTRAL, graph, metric, number, quantile, rate, rising, share, total

REQUESTS = "chart_index_cache_requests_total"
FILLS = "chart_index_cache_fill_duration_seconds"
GROUP = "chart_index_cache_group"
HIT = 'chart_index_outcome=~"hit|stale"'


def tier(name):
    """Matches the requests that asked a tier."""
    return f'chart_index_cache_tier="{name}"'


def hit_ratio(name, by=""):
    """The share of requests that a tier answered, of those that asked it."""
    return share(rate(REQUESTS, tier(name), HIT), rate(REQUESTS, tier(name)), by)


def rows():
    """The rows of the dashboard, with their titles."""
    return [
        ("", [*first_row(), *now()]),
        ("Hits", hits()),
        ("Memory and fills", memory()),
        ("Rate limits", limits()),
    ]


def now():
    """Current values."""
    local = rate(DECISIONS, 'chart_index_decider="local"')
    return [
        number(
            "Memory hit ratio",
            "The share of requests that the cache in memory answered.",
            "percentunit",
            NEUTRAL,
            hit_ratio("memory"),
            empty="No requests",
        ).decimals(1),
        number(
            "Redis hit ratio",
            "The share of misses in memory that the cache in Redis answered.",
            "percentunit",
            NEUTRAL,
            hit_ratio("redis"),
            empty="No requests",
        ).decimals(1),
        number(
            "Cache memory",
            "The largest share of its limit that the cache of a replica uses. A full cache evicts entries.",
            "percentunit",
            NEUTRAL,
            f"max({metric('chart_index_cache_size_bytes')} / {metric('chart_index_cache_size_limit_bytes')})",
            alert="ChartIndexCacheEvictions",
        ).decimals(1),
        number(
            "Failed fills",
            "The share of fills that ended with an error or a timeout.",
            "percentunit",
            rising(0.001, 0.05),
            share(rate(f"{FILLS}_count", 'chart_index_outcome=~"error|timeout"'), rate(f"{FILLS}_count")),
            empty="No fills",
        ).decimals(2),
        number(
            "Older responses",
            "Responses per second that were older than their lifetime, because a fill failed or was not possible.",
            "reqps",
            rising(0.1, 10),
            total(rate(REQUESTS, tier("store"), 'chart_index_outcome="older"')),
        ).decimals(1),
        number("Fill, p99", "Duration of fills.", "s", rising(0.25, 1), quantile(0.99, FILLS), empty="No fills"),
        number(
            "Refused by limits",
            "The share of requests above the limit of their client.",
            "percentunit",
            NEUTRAL,
            share(rate(DECISIONS, REFUSED), rate(DECISIONS)),
            empty="No requests",
        ).decimals(1),
        number(
            "Decided locally",
            "The share of decisions that a replica made alone, because Redis was unavailable.",
            "percentunit",
            rising(0.001, 0.01),
            share(local, rate(DECISIONS)),
            empty="No requests",
            alert="ChartIndexLocalRateLimits",
        ).decimals(1),
    ]


def hits():
    """Requests by tier, group and outcome."""
    outcome = "{{chart_index_outcome}}"
    return [
        graph(
            "Hit ratio by tier",
            "The share of requests that a tier answered, of those that asked it.",
            "percentunit",
            {"memory": hit_ratio("memory"), "Redis": hit_ratio("redis")},
            top=1,
        ),
        graph(
            "Hit ratio of memory by group",
            "The share of requests that the cache in memory answered.",
            "percentunit",
            {f"{{{{{GROUP}}}}}": hit_ratio("memory", GROUP)},
            top=1,
        ),
        graph(
            "Hit ratio of Redis by group",
            "The share of misses in memory that the cache in Redis answered.",
            "percentunit",
            {f"{{{{{GROUP}}}}}": hit_ratio("redis", GROUP)},
            top=1,
        ),
        *[
            graph(
                f"Requests to {title} by outcome",
                description,
                "reqps",
                {outcome: total(rate(REQUESTS, tier(name)), "chart_index_outcome")},
                stacked=True,
            )
            for name, title, description in [
                ("memory", "memory", "Stale: served, and read again in the background."),
                (
                    "redis",
                    "Redis",
                    "Requests that memory could not answer. Stale: served, and read again in the background.",
                ),
                (
                    "store",
                    "PostgreSQL or search",
                    "Filled: this request started the fill. Joined: it waited for the fill of another. Older: the fill "
                    "failed, took too long or was not possible, and an older response was served. Dropped: the "
                    "request ended before the fill.",
                ),
            ]
        ],
    ]


def memory():
    """Size, evictions, recent changes, fills."""
    pool = "chart_index_pool"
    return [
        graph(
            "Size of the cache",
            "Memory of cached responses, and the limit.",
            "bytes",
            {
                "{{instance}}": metric("chart_index_cache_size_bytes"),
                "{{instance}} limit": metric("chart_index_cache_size_limit_bytes"),
            },
        ),
        graph(
            "Entries and recent changes",
            "Cached responses, and the charts and chartsets whose last change a replica remembers.",
            "none",
            {
                "{{instance}} entries": metric("chart_index_cache_entries"),
                "{{instance}} changes": metric("chart_index_cache_recent_changes"),
            },
        ),
        graph(
            "Evictions",
            "Entries per second that made room for others.",
            "ops",
            {"{{instance}}": rate("chart_index_cache_evictions_total")},
        ),
        graph(
            "Fills by outcome",
            "Reads from PostgreSQL and searches per second that fill the cache.",
            "ops",
            {"{{chart_index_outcome}}": total(rate(f"{FILLS}_count"), "chart_index_outcome")},
            stacked=True,
        ),
        graph(
            "Duration of fills by group",
            "p50 and p99.",
            "s",
            {
                f"{{{{{GROUP}}}}} p50": quantile(0.5, FILLS, by=GROUP),
                f"{{{{{GROUP}}}}} p99": quantile(0.99, FILLS, by=GROUP),
            },
            logarithmic=True,
        ),
        graph(
            "Fills in flight",
            "Fills that run now.",
            "none",
            {f"{{{{{pool}}}}}": total(metric("chart_index_cache_fills_in_flight"), pool)},
        ),
    ]


def limits():
    """Decisions of the rate limiter."""
    return [
        graph(
            "Decisions by decider",
            "Per second. Redis: shared by all replicas. Memory: a client that Redis has refused, until its window has "
            "room. Local: by each replica, because Redis is unavailable.",
            "reqps",
            {"{{chart_index_decider}}": total(rate(DECISIONS), "chart_index_decider")},
            stacked=True,
        ),
        graph(
            "Refusals by group",
            "Requests per second above the limit of their client.",
            "reqps",
            {"{{chart_index_group}}": total(rate(DECISIONS, REFUSED), "chart_index_group")},
            stacked=True,
        ),
        graph(
            "Share of refusals by group",
            "Of the requests of the group.",
            "percentunit",
            {"{{chart_index_group}}": share(rate(DECISIONS, REFUSED), rate(DECISIONS), "chart_index_group")},
        ),
    ]
