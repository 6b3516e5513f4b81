"""The first row of every dashboard: whether the service and the servers that it uses are available."""

from .panels import metric, number, rate, rising, share, state, states, steps

REQUESTS = "http_server_request_duration_seconds_count"
DECISIONS = "chart_index_ratelimit_decisions_total"
REFUSED = 'chart_index_decision="refused"'
SERVER_ERROR = 'http_response_status_code=~"5.."'

FIRING = 'ALERTS{alertname=~"ChartIndex.+", alertname!="ChartIndexWatchdog", alertstate="firing"}'

# Of all instances, so that none at all is seen.
READY = '(sum(chart_index_ready{job="chart-index"}) or vector(0)) / (count(up{job="chart-index"}) or vector(1))'
POSTGRESQL = f"avg({metric('chart_index_postgresql_available')})"
REDIS = f"avg({metric('chart_index_redis_connected')})"
MEILISEARCH = f"avg({metric('chart_index_search_node_usable')})"
CONFIRMED = f"avg({metric('chart_index_cache_confirmed')})"


def first_row():
    """Nine panels in one row."""
    return [
        state(
            "Ready replicas",
            "Whether the replicas that Prometheus has as targets receive requests. A replica stays ready while "
            "PostgreSQL is unavailable.",
            READY,
            "ChartIndexNotReady",
        ).span(5),
        state(
            "PostgreSQL",
            "Whether the replicas have polled the catalogue within the last 5 seconds. Down: cached responses only.",
            POSTGRESQL,
            "ChartIndexPostgresqlUnavailable",
        ).span(2),
        state(
            "Redis",
            "Whether the replicas are connected to Redis. Down: rate limits and caches of each replica alone. "
            "No data where Redis is not configured.",
            REDIS,
            "ChartIndexRedisDisconnected",
        ).span(2),
        state(
            "Meilisearch",
            "Whether the replicas use the nodes of Meilisearch. Down: PostgreSQL answers lists. "
            "No data where Meilisearch is not configured.",
            MEILISEARCH,
            "ChartIndexSearchNodeUnusable",
        ).span(2),
        state(
            "Cache",
            "Whether the replicas can show that cached responses are current. No: they are read again before they "
            "are used, or PostgreSQL is unavailable.",
            CONFIRMED,
            "ChartIndexCacheUnconfirmed",
            texts=("Confirmed", "Unconfirmed", "Partly"),
        ).span(2),
        number(
            "Server errors",
            "Share of responses with a status of 500 or above.",
            "percentunit",
            rising(0.001, 0.01),
            share(rate(REQUESTS, SERVER_ERROR), rate(REQUESTS)),
            background=True,
            empty="No requests",
            alert="ChartIndexBudgetBurn14x",
        ).decimals(2),
        number(
            "Shed requests",
            "Share of requests that were refused because a concurrency limit or a deadline was exceeded.",
            "percentunit",
            rising(0.001, 0.01),
            share(rate("chart_index_http_requests_shed_total"), rate(REQUESTS)),
            background=True,
            empty="No requests",
            alert="ChartIndexRequestsShed",
        ).decimals(2),
        number(
            "Refused requests",
            "Share of requests above the limit of their client, of the group where it is the largest. Where "
            "TRUSTED_PROXIES is wrong, all clients are one, and most requests are refused.",
            "percentunit",
            rising(0.1, 0.5),
            f"max({share(rate(DECISIONS, REFUSED), rate(DECISIONS), 'chart_index_group')})",
            background=True,
            empty="No requests",
            alert="ChartIndexRequestsRefused",
        ).decimals(1),
        number(
            "Firing alerts",
            "Alerts of chart-index that fire, of all jobs and instances. The dashboard Service names them.",
            "none",
            steps(("green", None), ("red", 1)),
            f"count({FIRING}) or vector(0)",
            background=True,
        ).span(2),
    ]


def dependencies():
    """The same states over time."""
    return states(
        "Availability of dependencies",
        "Orange: at some replicas or nodes only. A gap: no replica was scraped, or the server is not configured.",
        {
            "PostgreSQL": POSTGRESQL,
            "Redis": REDIS,
            "Meilisearch": MEILISEARCH,
            "Cache confirmed": CONFIRMED,
        },
    )
