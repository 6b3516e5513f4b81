"""Draws the Grafana dashboards of a folder as one HTML page, from the answers of a Prometheus.

The page needs no network: the data, the scripts and uPlot are in it. It shows what the panels would show in Grafana, in
their grid, and lists the panels that have no data. Needs the standard library of Python 3.11 only.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from .prometheus import Prometheus, QueryError, has_data, seconds

FOLDER = Path(__file__).resolve().parent
ORDER = ["service", "saturation", "cache", "search", "dependencies"]


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(prog="page", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("output", type=Path, help="the file to write")
    parser.add_argument("--prometheus", default="http://127.0.0.1:9092", help="its address (default: %(default)s)")
    parser.add_argument("--dashboards", type=Path, default=FOLDER.parent / "dashboards", help="the folder of the files")
    parser.add_argument("--range", default="15m", help="the time to show, up to now (default: %(default)s)")
    parser.add_argument(
        "--every", type=int, metavar="SECONDS", help="repeat until interrupted; the page reloads itself"
    )
    return parser.parse_args()


def read_dashboards(folder):
    """The dashboards of a folder: known ones in their order, then others."""
    rank = {name: index for index, name in enumerate(ORDER)}
    files = sorted(folder.glob("*.json"), key=lambda path: (rank.get(path.stem, len(rank)), path.stem))
    return [{"name": path.stem} | json.loads(path.read_text(encoding="utf-8")) for path in files]


def without_data(dashboards):
    """The panels that have no data: the title of their dashboard, and their own."""
    panels = [(board["title"], panel) for board in dashboards for panel in board["panels"] if panel["type"] != "row"]
    return [(title, panel["title"]) for title, panel in panels if not has_data(panel)]


def write_page(options):
    """Queries Prometheus and writes the page. Returns the panels without data."""
    dashboards = read_dashboards(options.dashboards)
    prometheus = Prometheus(options.prometheus, seconds(options.range))
    prometheus.fill(dashboards)
    data = {
        "start": prometheus.start,
        "end": prometheus.end,
        "step": prometheus.step,
        "range": options.range,
        "every": options.every,
        "dashboards": dashboards,
    }
    # The file is replaced at once, so that a browser never reads a part of it.
    partial = options.output.with_name(f".{options.output.name}.partial")
    partial.write_text(page(data), encoding="utf-8")
    partial.replace(options.output)
    return without_data(dashboards)


def page(data):
    """The text of the page."""
    # "<" could end the script element.
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    parts = {
        "style": read("uplot/uPlot.min.css") + read("page.css"),
        "license": read("uplot/LICENSE"),
        "uplot": read("uplot/uPlot.iife.min.js"),
        "data": text,
        "script": read("units.js") + read("panels.js") + read("page.js"),
    }
    template = read("page.html")
    for name, part in parts.items():
        template = template.replace(f"@{name}@", part, 1)
    return template


def read(name):
    """A file of this folder."""
    return (FOLDER / name).read_text(encoding="utf-8")


def main():
    """Writes the page once, or repeatedly."""
    options = arguments()
    while options.every:
        try:
            write_page(options)
        except OSError as error:
            print(f"{options.prometheus}: {error}", file=sys.stderr)
        time.sleep(options.every)
    try:
        missing = write_page(options)
    except (OSError, QueryError, ValueError) as error:
        print(f"{options.prometheus}: {error}", file=sys.stderr)
        return 1
    for board, panel in missing:
        print(f"no data: {board}: {panel}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
