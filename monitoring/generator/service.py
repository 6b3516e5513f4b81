"""Service: what clients see, and the objectives."""

from .overview import FIRING, REQUESTS, SERVER_ERROR, dependencies, first_row
from .panels import falling, graph, metric, number, occurring, quantile, rate, share, states, steps, total

DURATION = "http_server_request_duration_seconds"
ROUTED = 'http_route!=""'
OBJECTIVES = {
    "Lookup": "lookup",
    "ROX": "rox",
    "List": "list",
    "Detail": "detail",
    "Page": "page",
    "Bulk": "bulk",
    "Freshness": "freshness",
}
ALL_INSTANCES = "Of all jobs and instances. "


def by_objective(record):
    """A recorded value of each service level objective."""
    return {title: f'{record}{{slo="{slo}"}}' for title, slo in OBJECTIVES.items()}


def rows():
    """The rows of the dashboard, with their titles."""
    return [
        ("", [*first_row(), *objectives(), dependencies(), *requests()]),
        ("Responses", responses()),
        ("Objectives over time", objectives_over_time()),
    ]


def objectives():
    """Error budgets and burn rates."""
    return [
        number(
            "Error budget left (30 days)",
            ALL_INSTANCES + "100 %: no errors in 30 days; 0 %: the budget is used; below: the objective is missed. "
            "Lookup: 99.9 % under 50 ms; ROX: 99.9 % under 100 ms; list, detail and page: 99 % under 300 ms; bulk: "
            "99 % under 2.5 s; freshness: 99 % of minutes with a lag under 30 s. A 429 is not an error.",
            "percentunit",
            falling(0, 0.25),
            by_objective("slo:error_budget_remaining:ratio30d"),
            alert="ChartIndexBudgetBurn1x",
        )
        .decimals(1)
        .span(12),
        number(
            "Burn rate (1 hour)",
            ALL_INSTANCES + "1 uses the budget of 30 days in 30 days, 14.4 in 2 days.",
            "none",
            steps(("green", None), ("yellow", 1), ("red", 14.4)),
            by_objective("slo:error_budget_burn:rate1h"),
            empty="No requests",
            alert="ChartIndexBudgetBurn14x",
        )
        .decimals(2)
        .span(12),
    ]


def requests():
    """Rate, errors, duration."""
    return [
        graph(
            "Requests by route",
            "Requests per second. `unmatched` has no route.",
            "reqps",
            {
                "{{http_route}}": total(rate(REQUESTS, ROUTED), "http_route"),
                "unmatched": total(rate(REQUESTS, 'http_route=""')),
            },
            width=12,
        ),
        graph(
            "Requests by group",
            "Requests per second, by what an objective is about.",
            "reqps",
            {"{{chart_index_group}}": total(rate(REQUESTS), "chart_index_group")},
            width=12,
        ),
        graph(
            "Server errors by kind",
            "Responses per second with a status of 500 or above, by the type of the problem.",
            "reqps",
            {
                "{{http_response_status_code}} {{error_type}}": occurring(
                    REQUESTS, SERVER_ERROR, by="http_response_status_code, error_type"
                )
            },
            stacked=True,
            width=12,
        ),
        graph(
            "p99 by route",
            "99 of 100 responses are faster.",
            "s",
            {"{{http_route}}": quantile(0.99, DURATION, ROUTED, by="http_route")},
            logarithmic=True,
            width=12,
        ),
    ]


def responses():
    """More about the requests."""
    return [
        graph(
            "p50 by route",
            "Half of the responses are faster.",
            "s",
            {"{{http_route}}": quantile(0.5, DURATION, ROUTED, by="http_route")},
            logarithmic=True,
        ),
        graph(
            "Share of server errors by route",
            "Responses with a status of 500 or above.",
            "percentunit",
            {"{{http_route}}": share(rate(REQUESTS, ROUTED, SERVER_ERROR), rate(REQUESTS, ROUTED), "http_route")},
        ),
        graph(
            "Responses by status",
            "Responses per second. A 429 is a request above the limit of its client.",
            "reqps",
            {"{{http_response_status_code}}": occurring(REQUESTS, by="http_response_status_code")},
            stacked=True,
        ),
        graph(
            "Requests in flight",
            "Requests that are processed now, by instance.",
            "none",
            {"{{instance}}": metric("http_server_active_requests")},
        ),
        graph(
            "Client errors by kind",
            "Responses per second with a status from 400 to 499, by the type of the problem.",
            "reqps",
            {
                "{{http_response_status_code}} {{error_type}}": occurring(
                    REQUESTS, 'http_response_status_code=~"4.."', by="http_response_status_code, error_type"
                )
            },
            stacked=True,
        ),
        graph(
            "Ready and draining",
            "1 while a replica is ready, or closes its connections before it exits.",
            "none",
            {
                "{{instance}} ready": metric("chart_index_ready"),
                "{{instance}} draining": metric("chart_index_draining"),
            },
            top=1,
        ),
    ]


def objectives_over_time():
    """Burn rates and budgets."""
    return [
        graph(
            "Burn rate (5 minutes)",
            ALL_INSTANCES + "The dashed line is the rate at which an alert pages, if it lasts for an hour.",
            "none",
            by_objective("slo:error_budget_burn:rate5m"),
            limit=14.4,
        ),
        graph(
            "Burn rate (6 hours)",
            ALL_INSTANCES + "The dashed line is the rate at which there is a ticket, if it lasts for 3 days.",
            "none",
            by_objective("slo:error_budget_burn:rate6h"),
            limit=1,
        ),
        graph(
            "Error budget left (30 days)",
            ALL_INSTANCES + "Below 0 the objective is missed.",
            "percentunit",
            by_objective("slo:error_budget_remaining:ratio30d"),
            top=1,
        ),
        states(
            "Firing alerts",
            ALL_INSTANCES + "No data while none fires.",
            {"{{alertname}}": f"max by (alertname) ({FIRING})"},
            thresholds=steps(("red", None)),
            texts=None,
        ).height(8),
    ]
