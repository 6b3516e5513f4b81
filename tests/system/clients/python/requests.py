"""Calls each method of the package on an index of the samples: requests.py URL"""

import signal
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chart_index import ChartIndex, ChartIndexError, HashFilter, hash_file, hash_folder

HASH = "ec3d3891de5128da2c66057ae435300d5ef5d71101c269160eaa553534f425bb"
CHARTSET = "21642f9846d39260"
UNKNOWN = "0" * 64
USER_AGENT = "tests/1.0 (me@example.org)"


def raises(error: type[Exception], text: str, call: Callable[[], object]) -> Exception:
    try:
        call()
    except error as raised:
        assert text in str(raised), f"{raised} instead of {text}"
        return raised
    raise AssertionError(f"no {error.__name__}")


class Refusing(BaseHTTPRequestHandler):
    """Refuses every request for a minute."""

    def do_GET(self) -> None:
        self.send_response(429)
        self.send_header("Retry-After", "60")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def lookups(index: ChartIndex) -> None:
    known = index.lookup(HASH, include=["links", "chartsets", "rating"])
    assert known["status"] == "known" and known["chart"]["title"] == "Harbour Lights"
    assert known["sources"][0]["url"].endswith("/900101")
    assert index.lookup(UNKNOWN)["status"] == "unknown"
    md5 = "0" * 32
    items = index.lookup_many([HASH, {"md5": md5}, {"alphaBeatmapId": 1}, UNKNOWN])
    assert [item["status"] for item in items] == ["known", "unknown", "unknown", "unknown"]
    assert items[1]["md5"] == md5
    assert index.lookup_many(iter([HASH] * 1001))[1000]["chartHash"] == HASH
    assert index.lookup_many([]) == []


def catalogue(index: ChartIndex) -> None:
    chartsets = list(index.search(keys=[4, 5], sort="title", perPage=1))
    assert len(chartsets) > 1 and sorted(chartsets, key=lambda item: item["title"]) == chartsets
    assert [item["id"] for item in index.search(q="harbour")]
    assert index.chartset(CHARTSET, include=["updated"])["charts"][0]["chart"]["keys"] == 4
    assert index.rox(HASH).startswith(b"ROX")
    assert index.preview(HASH)["keys"] == 4
    assert index.get("/api/changes?limit=1")["items"][0]["sequence"] == 1
    known = index.hash_filter()
    assert known is not None and HASH in known and len(known) > 10 and known.sequence > 0
    assert sum(f"{number:064x}"[::-1] in known for number in range(500)) < 20
    content = index.get_bytes("/api/charts/filter")
    assert HASH in HashFilter(content)


def errors(index: ChartIndex, base: str) -> None:
    refused = raises(ChartIndexError, "404 Not Found", lambda: index.rox(UNKNOWN))
    assert isinstance(refused, ChartIndexError)
    assert (refused.status, refused.type, refused.retry_after) == (404, "/problems/not-found", None)
    raises(ValueError, "64 lower-case hexadecimal", lambda: index.lookup("lookup"))
    raises(ValueError, "a chart is a note hash", lambda: index.lookup_many([{"md5": "1"}]))
    raises(ValueError, "unknown field `titel`", lambda: index.search(titel="a"))  # type: ignore[call-arg]
    included: list[Any] = ["all"]
    raises(ValueError, "unknown variant", lambda: index.lookup(HASH, include=included))
    raises(ValueError, "User-Agent", lambda: ChartIndex(base, ""))
    raises(ValueError, "http://", lambda: ChartIndex("ftp://charts.example", USER_AGENT))
    raises(ValueError, "damaged", lambda: HashFilter(b"CIHF\1\0\0\0"))
    unreachable = raises(ChartIndexError, "", lambda: ChartIndex("http://127.0.0.1:1", USER_AGENT).lookup(HASH))
    assert isinstance(unreachable, ChartIndexError) and unreachable.status is None


def pauses() -> None:
    server = HTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    refused = raises(ChartIndexError, "429", lambda: ChartIndex(base, USER_AGENT, max_wait=2).lookup(HASH))
    assert isinstance(refused, ChartIndexError) and refused.retry_after == 60
    found: list[tuple[int, float]] = []
    # Ctrl-C ends a pause.
    index = ChartIndex(base, USER_AGENT, on_pause=lambda status, seconds: found.append((status, seconds)))
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    started = time.monotonic()
    try:
        index.lookup(HASH)
    except KeyboardInterrupt:
        assert time.monotonic() - started < 20
    else:
        raise AssertionError("no interrupt")
    assert found == [(429, 60.0)]


def caches(base: str) -> None:
    cache: dict[str, tuple[str, bytes]] = {}
    for _ in range(2):
        index = ChartIndex(base, USER_AGENT, cache=cache)
        assert index.lookup(HASH)["status"] == "known"
    (url, (tag, body)), = cache.items()
    assert url.endswith(f"/api/charts/{HASH}") and tag.startswith('"') and body.startswith(b"{")
    cache[url] = tag, b'{"status": "of the cache"}'
    assert ChartIndex(base, USER_AGENT, cache=cache).get(f"/api/charts/{HASH}") == {"status": "of the cache"}


def files() -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "a.qua").write_text("Mode: Keys4\nTimingPoints:\n- Bpm: 120\nHitObjects:\n- Lane: 1\n")
        (Path(folder) / "b.osu").write_text("")
        chart, refused = hash_folder(Path(folder))
        assert "hash" in chart and chart["keys"] == 4 and chart["file"].endswith("a.qua")
        assert "reason" in refused and refused["kind"]
        assert hash_file("a.qua", (Path(folder) / "a.qua").read_bytes())[0].get("hash") == chart["hash"]
        raises(FileNotFoundError, "cannot read", lambda: hash_folder(Path(folder) / "none"))
    raises(ValueError, "neither a folder, a chart file nor an archive", lambda: hash_file("a.txt", b""))


def main(base: str) -> None:
    index = ChartIndex(f"{base}/", USER_AGENT)
    lookups(index)
    catalogue(index)
    errors(index, base)
    caches(base)
    files()
    pauses()


if __name__ == "__main__":
    main(sys.argv[1])
