"""Saturation: how much is left of each limited resource."""

from .overview import REQUESTS, first_row
from .panels import NEUTRAL, graph, metric, number, occurring, quantile, rate, rising, total

CPU = "process_cpu_time_seconds_total"
WAIT = "db_client_connection_wait_time_seconds"
BY_PROCESS = "{{job}} {{instance}}"
BY_RUNTIME = BY_PROCESS + " {{chart_index_runtime}}"


def rows():
    """The rows of the dashboard, with their titles."""
    return [
        ("", [*first_row(), *now()]),
        ("Processes", processes()),
        ("Connections to PostgreSQL", pool()),
        ("Requests and connections", requests()),
    ]


def of_limit(used, limit):
    """The largest share of a limit that an instance uses."""
    return f"max({metric(used)} / {metric(limit)})"


def cpu_per_request():
    """CPU time by instance; only programs that serve requests have both metrics."""
    return f"{total(rate(CPU), 'job, instance')} / ({total(rate(REQUESTS), 'job, instance')} > 0)"


def busy_ratio():
    """The share of time in which the workers of each runtime ran tasks."""
    return f"{rate('tokio_runtime_busy_time_seconds_total')} / {metric('tokio_runtime_workers')}"


def now():
    """Current values."""
    pool_used = total(metric("db_client_connection_open", 'db_client_connection_state="used"'), "job, instance")
    pool_max = total(metric("db_client_connection_max"), "job, instance")
    return [
        number(
            "CPU per request",
            "CPU time of chart-index per request.",
            "s",
            NEUTRAL,
            f"avg({cpu_per_request()})",
            empty="No requests",
        ),
        number("CPU", "Cores in use, all processes together.", "none", NEUTRAL, total(rate(CPU))).decimals(2),
        number(
            "Memory",
            "The largest share of its limit that a process uses: that of its container, or of the machine.",
            "percentunit",
            rising(0.7, 0.85),
            of_limit("process_memory_usage_bytes", "process_memory_limit_bytes"),
            alert="ChartIndexMemory",
        ).decimals(1),
        number(
            "File descriptors",
            "The largest share of its limit that a process has open.",
            "percentunit",
            rising(0.5, 0.8),
            of_limit("process_file_descriptors_open", "process_file_descriptors_limit"),
            alert="ChartIndexOpenFiles",
        ).decimals(1),
        number(
            "Busy ratio",
            "The largest share of time in which the worker threads of a runtime ran tasks.",
            "percentunit",
            rising(0.7, 0.9),
            f"max({busy_ratio()})",
        ).decimals(1),
        number(
            "Pool in use",
            "The largest share of the connections to PostgreSQL that a replica uses.",
            "percentunit",
            rising(0.8, 0.95),
            f"max({pool_used} / {pool_max})",
        ).decimals(0),
        number(
            "Pool wait, p99",
            "How long a request waits for a connection to PostgreSQL.",
            "s",
            rising(0.02, 0.1),
            quantile(0.99, WAIT, 'db_client_connection_pool_name="requests"'),
            empty="No reads",
            alert="ChartIndexPoolWait",
        ),
        number(
            "Requests in flight",
            "The largest share of MAX_REQUESTS_IN_FLIGHT that a replica uses.",
            "percentunit",
            rising(0.7, 0.9),
            of_limit("http_server_active_requests", "chart_index_http_requests_limit"),
            alert="ChartIndexRequestsShed",
        ).decimals(1),
    ]


def processes():
    """CPU, memory, descriptors, runtime."""
    return [
        graph(
            "CPU per request",
            "CPU time of a replica, divided by its requests.",
            "s",
            {"{{instance}}": cpu_per_request()},
        ),
        graph(
            "CPU by mode",
            "Cores in use.",
            "none",
            {"{{job}} {{cpu_mode}}": total(rate(CPU), "job, cpu_mode")},
            stacked=True,
        ),
        graph(
            "Busy ratio of the runtime",
            "The share of time in which worker threads ran tasks. Near 1, tasks wait.",
            "percentunit",
            {BY_RUNTIME: busy_ratio()},
            limit=0.9,
        ),
        graph(
            "Memory",
            "Resident memory, and its limit.",
            "bytes",
            {
                BY_PROCESS: metric("process_memory_usage_bytes"),
                f"{BY_PROCESS} limit": metric("process_memory_limit_bytes"),
            },
            logarithmic=True,
        ),
        graph(
            "File descriptors",
            "Open file descriptors, and how many may be open.",
            "none",
            {
                BY_PROCESS: metric("process_file_descriptors_open"),
                f"{BY_PROCESS} limit": metric("process_file_descriptors_limit"),
            },
            logarithmic=True,
        ),
        graph(
            "Tasks of the runtime",
            "Tasks that exist, and tasks that wait in the global queue.",
            "none",
            {
                f"{BY_RUNTIME} alive": metric("tokio_runtime_alive_tasks"),
                f"{BY_RUNTIME} queued": metric("tokio_runtime_global_queue_depth"),
            },
        ),
    ]


def pool():
    """The pools of connections to PostgreSQL."""
    name = "db_client_connection_pool_name"
    return [
        graph(
            "Connections by pool",
            "Connections to PostgreSQL, of all replicas, and how many there may be.",
            "none",
            {
                f"{{{{{name}}}}} {{{{db_client_connection_state}}}}": total(
                    metric("db_client_connection_open"), f"{name}, db_client_connection_state"
                ),
                f"{{{{{name}}}}} limit": total(metric("db_client_connection_max"), name),
            },
        ),
        graph(
            "Wait for a connection",
            "How long requests waited for a connection, where the pool had one in time.",
            "s",
            {
                f"{{{{{name}}}}} p50": quantile(0.5, WAIT, by=name),
                f"{{{{{name}}}}} p99": quantile(0.99, WAIT, by=name),
            },
            logarithmic=True,
        ),
        graph(
            "Timeouts of the pool",
            "Requests per second for which there was no connection in time.",
            "ops",
            {f"{{{{{name}}}}}": total(rate("db_client_connection_timeouts_total"), name)},
        ),
    ]


def requests():
    """Concurrency limits and connections."""
    return [
        graph(
            "Requests in flight",
            "Requests that are processed now, and MAX_REQUESTS_IN_FLIGHT.",
            "none",
            {
                "{{instance}}": metric("http_server_active_requests"),
                "{{instance}} limit": metric("chart_index_http_requests_limit"),
            },
            logarithmic=True,
        ),
        graph(
            "Shed requests by reason",
            "Requests per second that were refused because of a concurrency limit or a deadline.",
            "reqps",
            {
                "{{chart_index_group}} {{chart_index_reason}}": occurring(
                    "chart_index_http_requests_shed_total", by="chart_index_group, chart_index_reason"
                )
            },
            stacked=True,
        ),
        graph(
            "Fills in flight",
            "Reads from PostgreSQL and searches that fill the cache now.",
            "none",
            {"{{chart_index_pool}}": total(metric("chart_index_cache_fills_in_flight"), "chart_index_pool")},
        ),
        graph(
            "Connections of clients",
            "Open connections of the public listener, and MAX_CONNECTIONS.",
            "none",
            {
                "{{instance}}": metric("chart_index_http_connections"),
                "{{instance}} limit": metric("chart_index_http_connections_limit"),
            },
            logarithmic=True,
        ),
        graph(
            "Closed connections by reason",
            "Connections per second.",
            "ops",
            {"{{chart_index_reason}}": total(rate("chart_index_http_connections_closed_total"), "chart_index_reason")},
            stacked=True,
        ),
        graph(
            "Dropped telemetry",
            "Spans and exports of metrics that were not delivered, and log lines that were not written, per second.",
            "ops",
            {
                "{{job}} {{chart_index_signal}}": total(
                    rate("chart_index_telemetry_dropped_total"), "job, chart_index_signal"
                )
            },
        ),
    ]
