#!/usr/bin/env bash
# DuckDB writes no Bloom filter for a column of unique digests, and one for a column of 50 different numbers.
#
# It writes them for row groups that it encodes with a dictionary, and it drops the dictionary where most values
# are different. So the columns for which statistics cannot rule out a row group, and a filter could, have none,
# also with `write_bloom_filter true`. With limits of the dictionary above the size of the data there is one.
#
# 2026-11-28: duckdb 1.5.6 and 2.0.1 of PyPI.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

for version in 1.5.6 2.0.1; do
    python3 -m venv "$version"
    "$version/bin/pip" install --quiet --disable-pip-version-check "duckdb==$version"
done

cat >expected <<'END'
duckdb 1.5.6: 50 numbers: yes, digests: no, digests with a large dictionary: yes
duckdb 2.0.1: 50 numbers: yes, digests: no, digests with a large dictionary: yes
END
cat >write.py <<'END'
import duckdb

DIGESTS = "SELECT unhex(sha256(number::VARCHAR)) AS value FROM range(20000) AS numbers(number)"
DICTIONARY = ", dictionary_size_limit 20000, string_dictionary_page_size_limit 10000000"


def has_filter(query, options=""):
    duckdb.sql(f"COPY ({query}) TO 'values.parquet' (FORMAT parquet{options})")
    metadata = duckdb.sql("SELECT bloom_filter_offset IS NOT NULL FROM parquet_metadata('values.parquet')")
    return "yes" if metadata.fetchall()[0][0] else "no"


numbers = has_filter("SELECT number % 50 AS value FROM range(20000) AS numbers(number)")
digests, large = has_filter(DIGESTS, ", write_bloom_filter true"), has_filter(DIGESTS, DICTIONARY)
name = f"duckdb {duckdb.__version__}"
print(f"{name}: 50 numbers: {numbers}, digests: {digests}, digests with a large dictionary: {large}")
END
for version in 1.5.6 2.0.1; do "$version/bin/python" write.py; done >seen
cat seen
diff expected seen
