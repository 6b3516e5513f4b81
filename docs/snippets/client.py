"""Says which charts of a folder an index knows, and where they are from:

pip install chart-index && python3 client.py https://charts.example songs
"""

import sys

from chart_index import ChartIndex, hash_folder

base, folder = sys.argv[1:]
index = ChartIndex(base, "example-client/1.0 (me@example.org)")

charts = []
for found in hash_folder(folder):
    if "hash" in found:
        charts.append(found)
    else:
        print(f"{found['file']}: {found['reason']}", file=sys.stderr)
items = index.lookup_many([chart["hash"] for chart in charts], include=["links"])
for chart, item in zip(charts, items):
    sources = item["sources"] if item["status"] == "known" else []
    print(item["status"], chart["file"], *(source["url"] for source in sources if "url" in source))
