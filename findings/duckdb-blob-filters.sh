#!/usr/bin/env bash
# DuckDB 1.5 does not find a digest in a Parquet file that has it, if the file has a Bloom filter.
#
# `hash = unhex(…)` finds nothing: the filter rules out row groups that have the value. The text of the digest
# is found, and the digest itself with IN, and in a file without a filter. DuckDB writes a filter where values
# repeat often, so the same query finds digests in one file and not in another. 1.4 and 2.0 find them in all.
#
# 2026-11-28: duckdb 1.4.5, 1.5.6 and 2.0.1 of PyPI.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

for version in 1.4.5 1.5.6 2.0.1; do
    python3 -m venv "$version"
    "$version/bin/pip" install --quiet --disable-pip-version-check "duckdb==$version"
done

cat >write.py <<'END'
import sys

import duckdb

REPETITIONS = {"repeated": 8, "unique": 1}
for name, repetitions in REPETITIONS.items():
    digest = f"unhex(sha256((number // {repetitions})::VARCHAR))"
    charts = f"SELECT {digest} AS hash, hex(hash) AS text FROM range(8000) AS numbers(number)"
    duckdb.sql(f"COPY ({charts}) TO '{sys.argv[1]}-{name}.parquet' (FORMAT parquet)")
END
cat >read.py <<'END'
import duckdb

name = f"duckdb {duckdb.__version__}"
for file in ("1.5.6-repeated", "2.0.1-repeated", "1.5.6-unique"):
    counts = []
    for condition in ("hash = {0}", "hash IN ({0}, ''::BLOB)", "text = hex({0})"):
        query = f"SELECT count(*) FROM '{file}.parquet' WHERE " + condition.format("unhex(sha256('7'))")
        counts.append(duckdb.sql(query).fetchall()[0][0])
    print(f"{name}, {file}: by = {counts[0]}, by IN {counts[1]}, by text {counts[2]}")
END
cat >expected <<'END'
duckdb 1.4.5, 1.5.6-repeated: by = 8, by IN 8, by text 8
duckdb 1.4.5, 2.0.1-repeated: by = 8, by IN 8, by text 8
duckdb 1.4.5, 1.5.6-unique: by = 1, by IN 1, by text 1
duckdb 1.5.6, 1.5.6-repeated: by = 0, by IN 8, by text 8
duckdb 1.5.6, 2.0.1-repeated: by = 0, by IN 8, by text 8
duckdb 1.5.6, 1.5.6-unique: by = 1, by IN 1, by text 1
duckdb 2.0.1, 1.5.6-repeated: by = 8, by IN 8, by text 8
duckdb 2.0.1, 2.0.1-repeated: by = 8, by IN 8, by text 8
duckdb 2.0.1, 1.5.6-unique: by = 1, by IN 1, by text 1
END
for version in 1.5.6 2.0.1; do "$version/bin/python" write.py "$version"; done
for version in 1.4.5 1.5.6 2.0.1; do "$version/bin/python" read.py; done >seen
cat seen
diff expected seen
