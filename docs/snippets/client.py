"""Uses a chart index: python3 client.py https://charts.example"""

import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

BASE = sys.argv[1]
# A way to reach you, so that the operator can ask before blocking.
USER_AGENT = "example-client/1.0 (me@example.org)"

cache = {}  # URL -> (ETag, JSON): keep it on disk, so that the next run uses it


def get(path, **parameters):
    """Returns the JSON at a path. Sends the ETag of an earlier response, and waits when the limit is exceeded."""
    url = BASE + path + ("?" + urllib.parse.urlencode(parameters) if parameters else "")
    while True:
        headers = {"User-Agent": USER_AGENT}
        if url in cache:
            headers["If-None-Match"] = cache[url][0]
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
                cache[url] = response.headers["ETag"], json.load(response)
        except urllib.error.HTTPError as error:
            if error.code in (429, 503):
                seconds = int(error.headers["Retry-After"])
                print(f"waiting {seconds} s", file=sys.stderr)
                time.sleep(seconds)
                continue
            if error.code != 304:  # 304 Not Modified: the cached JSON is current
                raise
            print("not modified", file=sys.stderr)
        return cache[url][1]


def chartsets(**filters):
    """Yields all chartsets that match, page by page."""
    page = 1
    while True:
        found = get("/api/chartsets", **filters, page=page)
        yield from found["items"]
        if page * found["perPage"] >= found["total"]:
            return
        page += 1


if __name__ == "__main__":
    for chartset in chartsets(q="harbour", sort="title", perPage=1):
        print(chartset["id"], chartset["title"])
    detail = get("/api/chartsets/" + chartset["id"])
    chart_hash = detail["charts"][0]["chart"]["hash"]
    for _ in range(2):  # the second time it is not modified
        lookup = get("/api/charts/" + chart_hash)
    print(lookup["status"], [source["ref"] for source in lookup.get("sources", [])][0])
