"""Writes the Grafana dashboards of monitoring/dashboards.

python -m generator          writes the files
python -m generator --check  compares the files with what would be written, and parses and serialises each again

Needs grafana-foundation-sdk (scripts/requirements/dashboards.txt has the version).
"""

import json
import sys
from pathlib import Path

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardCursorSync,
    DashboardLinkType,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from . import cache, dependencies, saturation, search, service
from .panels import DATASOURCE

FOLDER = Path(__file__).resolve().parent.parent / "dashboards"
TAG = "chart-index"
# Of the grid. The library places a panel beside the last one where that begins before the end of the row.
COLUMNS = 24
# Processes that were not there two minutes before, by version.
STARTS = (
    'count by (job, service_version) (target_info{job=~"chart-index|chart-indexer"}'
    ' unless target_info{job=~"chart-index|chart-indexer"} offset 2m)'
)
DASHBOARDS = {
    "service": ("Service", "Requests, errors, durations and objectives.", service),
    "saturation": ("Saturation", "How much is left of each limited resource.", saturation),
    "cache": ("Cache and limits", "Where responses come from, and which clients are refused.", cache),
    "search": ("Search and index", "Which engine answers lists, how fresh its index is, and the indexer.", search),
    "dependencies": ("Dependencies", "The clients of PostgreSQL, Redis, Meilisearch and objects.", dependencies),
}


def query_variable(name, label, query):
    """A variable of which several values may be selected; at first it has all of them."""
    selected = VariableOption(selected=True, text=["All"], value=["$__all"])
    variable = builders.QueryVariable(name).label(label).datasource(DATASOURCE).query(query).current(selected)
    variable.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)
    return variable.multi(True).include_all(True).all_value(".+")


def generate(name):
    """The text of the file of a dashboard."""
    title, description, module = DASHBOARDS[name]
    board = (
        builders.Dashboard(f"chart-index: {title}")
        .uid(f"chart-index-{name}")
        .description(description)
        .tags([TAG])
        .time("now-1h", "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .annotation(
            builders.AnnotationQuery()
            .name("Starts")
            .datasource(DATASOURCE)
            .enable(True)
            .icon_color("blue")
            .expr(STARTS)
        )
        .with_variable(builders.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(query_variable("job", "Job", "label_values(process_start_time_seconds, job)"))
        .with_variable(
            query_variable("instance", "Instance", 'label_values(process_start_time_seconds{job=~"$job"}, instance)')
        )
        .with_variable(
            builders.TextBoxVariable("runbook")
            .label("Runbook")
            .description("Where docs/runbook.md is served")
            .default_value("docs/runbook.md")
        )
        .link(
            builders.DashboardLink("Runbook")
            .type(DashboardLinkType.LINK)
            .url("${runbook}")
            .icon("doc")
            .target_blank(True)
        )
        .link(
            builders.DashboardLink("chart-index")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(False)
            .keep_time(True)
            .include_vars(True)
        )
    )
    number = 0
    for row, panels in module.rows():
        if row:
            number += 1
            board.with_row(builders.Row(row).id(number))
        for panel in panels:
            number += 1
            board.with_panel(panel.id(number))
    built = board.build()
    for panel in built.panels:
        if panel.grid_pos.x + panel.grid_pos.w > COLUMNS:
            raise ValueError(f"{title}: {panel.title} does not fit into its row")
    return serialise(built)


def serialise(board):
    """JSON with one key a line, so that changes are easy to review."""
    return json.dumps(board, cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def problem(name):
    """What is wrong with the file of a dashboard."""
    path = FOLDER / f"{name}.json"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text != generate(name):
        return "is not what the generator writes"
    if text != serialise(Dashboard.from_json(json.loads(text))):
        return "changes when it is parsed and serialised"
    return None


def main():
    """Writes or checks all dashboards."""
    register_default_plugins()
    if sys.argv[1:] == ["--check"]:
        problems = {name: found for name in DASHBOARDS if (found := problem(name))}
        unknown = {path.stem for path in FOLDER.glob("*.json")} - DASHBOARDS.keys()
        problems |= dict.fromkeys(unknown, "is not written by the generator")
        for name, found in problems.items():
            print(f"monitoring/dashboards/{name}.json {found}", file=sys.stderr)
        return 1 if problems else 0
    FOLDER.mkdir(exist_ok=True)
    for name in DASHBOARDS:
        (FOLDER / f"{name}.json").write_text(generate(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
