"""Dependencies: the clients of PostgreSQL, Redis, Meilisearch and the object store."""

from . import overview
from .panels import graph, metric, number, occurring, quantile, rate, rising, share, total

DURATION = "db_client_operation_duration_seconds"
SYSTEMS = {
    "PostgreSQL": "postgresql",
    "Redis": "redis",
    "Meilisearch": "meilisearch",
    "Object store": "object_store",
}
# The width of a panel for each system.
WIDTH = 24 // len(SYSTEMS)
# The p99 in seconds from which a system is slow, and very slow. A request waits 50 ms for Redis.
SLOW = {"postgresql": (0.1, 0.5), "redis": (0.01, 0.05), "meilisearch": (0.25, 1), "object_store": (0.25, 1)}
FAILED = 'error_type!=""'


def system(name):
    """Matches the operations of a system."""
    return f'db_system_name="{name}"'


def rows():
    """The rows of the dashboard, with their titles."""
    summary = [panel for title, name in SYSTEMS.items() for panel in now(title, name)]
    return [
        ("", [*overview.first_row(), overview.dependencies(), *summary, *errors()]),
        ("Durations", [*durations(0.99), *durations(0.5)]),
        ("Operations", [*operations(), *pool()]),
    ]


def now(title, name):
    """Current values of a system."""
    return [
        number(
            f"{title}: p99",
            "Duration of all operations together.",
            "s",
            rising(*SLOW[name]),
            quantile(0.99, DURATION, system(name)),
            empty="No calls",
        ).span(WIDTH // 2),
        number(
            f"{title}: failed",
            "The share of operations with an error or a timeout.",
            "percentunit",
            rising(0.001, 0.05),
            share(rate(f"{DURATION}_count", system(name), FAILED), rate(f"{DURATION}_count", system(name))),
            background=True,
            empty="No calls",
        )
        .decimals(2)
        .span(WIDTH // 2),
    ]


def errors():
    """Failed operations by kind."""
    return [
        graph(
            f"{title}: errors",
            "Operations per second with an error or a timeout.",
            "ops",
            {
                "{{db_operation_name}}: {{error_type}}": occurring(
                    f"{DURATION}_count", system(name), FAILED, by="db_operation_name, error_type"
                )
            },
            width=WIDTH,
            stacked=True,
        )
        for title, name in SYSTEMS.items()
    ]


def durations(value):
    """A quantile of the duration of each operation."""
    return [
        graph(
            f"{title}: p{int(value * 100)} by operation",
            "Duration of successful and failed operations, with their retries.",
            "s",
            {"{{db_operation_name}}": quantile(value, DURATION, system(name), by="db_operation_name")},
            width=WIDTH,
            logarithmic=True,
        )
        for title, name in SYSTEMS.items()
    ]


def operations():
    """Operations by name."""
    return [
        graph(
            f"{title}: operations",
            "Operations per second.",
            "ops",
            {"{{db_operation_name}}": total(rate(f"{DURATION}_count", system(name)), "db_operation_name")},
            width=WIDTH,
            stacked=True,
        )
        for title, name in SYSTEMS.items()
    ]


def pool():
    """The pools of PostgreSQL, and its prepared statements."""
    name = "db_client_connection_pool_name"
    return [
        graph(
            "PostgreSQL: connections",
            "Connections of all replicas by pool.",
            "none",
            {
                f"{{{{{name}}}}} {{{{db_client_connection_state}}}}": total(
                    metric("db_client_connection_open"), f"{name}, db_client_connection_state"
                )
            },
            stacked=True,
        ),
        graph(
            "PostgreSQL: wait for a connection",
            "p99, and requests per second for which there was no connection in time.",
            "s",
            {f"{{{{{name}}}}} p99": quantile(0.99, "db_client_connection_wait_time_seconds", by=name)},
            logarithmic=True,
        ),
        graph(
            "PostgreSQL: statements and timeouts",
            "Per second: prepared statements that PostgreSQL no longer knows or can no longer run, and requests for "
            "which there was no connection in time.",
            "ops",
            {
                "plan errors": total(rate("chart_index_postgresql_plan_errors_total")),
                f"{{{{{name}}}}} timeouts": total(rate("db_client_connection_timeouts_total"), name),
            },
        ),
    ]
