"""Queries the HTTP API of Prometheus as the data source of Grafana does."""

import json
import math
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor

TIMEOUT_SECONDS = 30
# Points of a series, about one for each pixel of a small panel.
POINTS = 240
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration):
    """The length of a duration of one number and one unit, such as `15m`."""
    match = re.fullmatch(r"(\d+)(ms|s|m|h|d)", duration)
    if not match:
        raise ValueError(f"{duration}: not a duration such as 15m")
    return int(match[1]) * UNITS[match[2]]


class QueryError(Exception):
    """Prometheus rejects a query."""


class Prometheus:
    """A server, and the time that its answers cover."""

    def __init__(self, url, length, end=None):
        """Queries `length` seconds up to `end` (default: now)."""
        self.url = url.rstrip("/")
        scrape = self.scrape_interval()
        self.step = max(scrape, math.ceil(length / POINTS))
        # Steps start at multiples of their length, as those of Grafana, so that a graph does not change as it
        # moves.
        self.end = math.floor((end or time.time()) / self.step) * self.step
        self.start = self.end - math.floor(length / self.step) * self.step
        self.variables = {
            "__rate_interval": f"{max(self.step + scrape, 4 * scrape)}s",
            "__interval": f"{self.step}s",
            "__range": f"{int(length)}s",
            "job": ".+",
            "instance": ".+",
        }

    def get(self, path, **parameters):
        """The data of an answer."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise QueryError(f"{parameters.get('query', path)}: {error.read().decode()}") from error

    def scrape_interval(self):
        """The longest interval of the targets, in seconds."""
        targets = self.get("targets", state="active")["activeTargets"]
        return max((math.ceil(seconds(target["scrapeInterval"])) for target in targets), default=15)

    def substitute(self, expression):
        """The expression without variables of Grafana."""
        return re.sub(r"\$\{?(\w+)\}?", lambda match: self.variables[match[1]], expression)

    def run(self, target):
        """The series of a query: their legends, and a value for each step or one for an instant query."""
        expression = self.substitute(target["expr"])
        if target.get("instant"):
            answer = self.get("query", query=expression, time=self.end)
            return [self.series(target, one["metric"], [one["value"]]) for one in answer["result"]]
        answer = self.get("query_range", query=expression, start=self.start, end=self.end, step=self.step)
        return [self.series(target, one["metric"], one["values"]) for one in answer["result"]]

    def series(self, target, labels, samples):
        """A series with a value for each step: null where Prometheus has none."""
        found = {round((float(at) - self.start) / self.step): number(value) for at, value in samples}
        if target.get("instant"):
            values = list(found.values())
        else:
            values = [found.get(index) for index in range(round((self.end - self.start) / self.step) + 1)]
        return {"name": legend(target.get("legendFormat", ""), labels), "values": values}

    def fill(self, dashboards):
        """Adds the series of every query to the targets of the panels."""
        targets = [target for board in dashboards for panel in board["panels"] for target in panel.get("targets", [])]
        with ThreadPoolExecutor(4) as pool:
            for target, series in zip(targets, pool.map(self.run, targets), strict=True):
                target["series"] = series


def number(text):
    """A number that JSON can hold, with 6 significant digits."""
    value = float(text)
    return float(f"{value:.6g}") if math.isfinite(value) else None


def legend(template, labels):
    """The name of a series."""
    if template:
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), template).strip()
    pairs = ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))
    return pairs or "value"


def has_data(panel):
    """Whether a query of a panel has a value."""
    every = (series["values"] for target in panel.get("targets", []) for series in target["series"])
    return any(value is not None for values in every for value in values)
