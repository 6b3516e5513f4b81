"""Search and index: which engine answers lists, how fresh its index is, and what the indexer does."""

from .overview import first_row
from .panels import graph, metric, number, occurring, quantile, rate, rising, share, states, total

RESPONSES = "chart_index_search_responses_total"
SEARCHES = "chart_index_search_requests_total"
PASSES = "chart_index_sync_pass_duration_seconds"
NODE = "chart_index_search_node"
FALLBACK = 'chart_index_search_role="fallback"'
LAG = "chart_index_search_node_lag_seconds"
PENDING = "chart_index_search_node_pending_changes"
SINCE_SYNC = f"time() - max by ({NODE}) ({metric('chart_index_sync_last_success_seconds')})"
# The limit of the objective for freshness.
LAG_LIMIT = 30


def rows():
    """The rows of the dashboard, with their titles."""
    return [
        ("", [*first_row(), *now(), nodes(), *lists()]),
        ("Index", index()),
        ("Sync", sync()),
    ]


def now():
    """Current values."""
    return [
        number(
            "Fallback share",
            "The share of list responses, cached or not, of PostgreSQL in place of Meilisearch.",
            "percentunit",
            rising(0.01, 0.05),
            share(rate(RESPONSES, FALLBACK), rate(RESPONSES)),
            background=True,
            empty="No lists",
            alert="ChartIndexSearchFallback",
        ).decimals(1),
        number(
            "Failed searches",
            "The share of searches that an engine did not answer.",
            "percentunit",
            rising(0.001, 0.05),
            share(rate(SEARCHES, 'chart_index_outcome=~"unavailable|error"'), rate(SEARCHES)),
            empty="No searches",
        ).decimals(2),
        number(
            "Lag",
            "The largest lag of a node. No data while a node is unavailable.",
            "s",
            rising(10, LAG_LIMIT),
            f"max({metric(LAG)})",
            alert="ChartIndexSearchLag",
        ).decimals(1),
        number(
            "Pending changes",
            "The most changes that a node does not have yet.",
            "none",
            rising(1000, 10000),
            f"max({metric(PENDING)})",
        ),
        number(
            "Changes to sync",
            "The most changes that a node of the indexer lacks.",
            "none",
            rising(1000, 10000),
            f"max({metric('chart_index_sync_pending_changes')})",
        ),
        number(
            "Oldest change",
            "Age of the oldest change that a node of the indexer lacks.",
            "s",
            rising(LAG_LIMIT, 300),
            f"max({metric('chart_index_sync_lag_seconds')})",
            alert="ChartIndexSyncLag",
        ),
        number(
            "Since the last sync",
            "Time since the last successful pass of the node that waits longest.",
            "s",
            rising(300, 900),
            f"max({SINCE_SYNC})",
            alert="ChartIndexSyncWithoutSuccess",
        )
        .decimals(0)
        .span(6),
    ]


def nodes():
    """Whether the nodes were in use."""
    usable = f"avg by ({NODE}) ({metric('chart_index_search_node_usable')})"
    description = "Whether the replicas use a node: it is available, has the index format, and its lag is small enough."
    return states("Usable nodes", description, {f"{{{{{NODE}}}}}": usable}).height(4)


def lists():
    """What answers lists."""
    return [
        graph(
            "List responses by engine",
            "Responses per second, cached or not. Primary: the configured engine.",
            "reqps",
            {
                "{{chart_index_search_engine}} {{chart_index_search_role}}": total(
                    rate(RESPONSES), "chart_index_search_engine, chart_index_search_role"
                )
            },
            stacked=True,
        ),
        graph(
            "Searches by outcome",
            "Searches per second that an engine ran. Unsupported: no usable node has the feature containsFilter on.",
            "ops",
            {
                "{{chart_index_search_engine}} {{chart_index_outcome}}": occurring(
                    SEARCHES, by="chart_index_search_engine, chart_index_outcome"
                )
            },
            stacked=True,
        ),
        graph(
            "Duration of list fills",
            "p50 and p99 of lists that were not cached.",
            "s",
            {
                f"p{int(value * 100)}": quantile(
                    value, "chart_index_cache_fill_duration_seconds", 'chart_index_cache_group="list"'
                )
                for value in (0.5, 0.99)
            },
            logarithmic=True,
        ),
    ]


def index():
    """Lag of the nodes."""
    return [
        graph(
            "Lag by node",
            "Age of the oldest change that a node does not have, as chart-index sees it. The dashed line is the limit "
            "of the objective.",
            "s",
            {f"{{{{{NODE}}}}}": f"max by ({NODE}) ({metric(LAG)})"},
            limit=LAG_LIMIT,
        ),
        graph(
            "Pending changes by node",
            "Changes after the position of a node, up to a bound.",
            "none",
            {f"{{{{{NODE}}}}}": f"max by ({NODE}) ({metric(PENDING)})"},
        ),
        graph(
            "Requests to Meilisearch",
            "p99 of each operation.",
            "s",
            {
                "{{job}} {{db_operation_name}}": quantile(
                    0.99,
                    "db_client_operation_duration_seconds",
                    'db_system_name="meilisearch"',
                    by="job, db_operation_name",
                )
            },
            logarithmic=True,
        ),
    ]


def sync():
    """chart-indexer follow."""
    changes = f"max({metric('chart_index_sync_pending_changes')})"
    return [
        graph("Changes to sync", "The most changes that a node lacks.", "none", {"changes": changes}),
        graph(
            "Age of the oldest change",
            "0 while the nodes have all changes.",
            "s",
            {"age": f"max({metric('chart_index_sync_lag_seconds')})"},
            limit=LAG_LIMIT,
        ),
        graph("Time since the last pass", "That was successful.", "s", {f"{{{{{NODE}}}}}": SINCE_SYNC}),
        graph(
            "Passes by outcome",
            "Passes per second.",
            "ops",
            {
                f"{{{{{NODE}}}}} {{{{chart_index_outcome}}}}": total(
                    rate(f"{PASSES}_count"), f"{NODE}, chart_index_outcome"
                )
            },
        ),
        graph(
            "Duration of passes",
            "p50 and p99.",
            "s",
            {
                f"{{{{{NODE}}}}} p50": quantile(0.5, PASSES, by=NODE),
                f"{{{{{NODE}}}}} p99": quantile(0.99, PASSES, by=NODE),
            },
            logarithmic=True,
        ),
        graph(
            "Documents by action",
            "Documents per second. Quarantined: rejected by a node.",
            "ops",
            {"{{chart_index_sync_action}}": total(rate("chart_index_sync_documents_total"), "chart_index_sync_action")},
            stacked=True,
        ),
    ]
