#!/usr/bin/env bash
# Polars leaves out a field that no object of the first 100 lines has, DuckDB one that the first 20,480 lack.
#
# Both take the columns of JSON Lines from a sample. A field that occurs later is no column of the result, and
# no error says so: the values are gone. PyArrow and pandas have the column. `infer_schema_length=None` and
# `sample_size = -1` look at all lines.
#
# 2026-11-28: polars 2.1.0, duckdb 2.0.1, duckdb-cli 1.5.6, pyarrow 26.0.1 and pandas 3.1.1 of PyPI.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check \
    polars==2.1.0 duckdb==2.0.1 duckdb-cli==1.5.6 pyarrow==26.0.1 pandas==3.1.1

cat >expected <<'END'
first in line 100: found by polars, polars infer_schema_length=None, duckdb 1.5.6, duckdb 2.0.1, duckdb 2.0.1 sample_size=-1, pyarrow, pandas
first in line 101: found by polars infer_schema_length=None, duckdb 1.5.6, duckdb 2.0.1, duckdb 2.0.1 sample_size=-1, pyarrow, pandas
first in line 20480: found by polars infer_schema_length=None, duckdb 1.5.6, duckdb 2.0.1, duckdb 2.0.1 sample_size=-1, pyarrow, pandas
first in line 20481: found by polars infer_schema_length=None, duckdb 2.0.1 sample_size=-1, pyarrow, pandas
END
env/bin/python - >seen <<'END'
import json
import subprocess

import duckdb
import pandas
import polars
import pyarrow.json


def duckdb_program(file):
    described = subprocess.check_output(["env/bin/duckdb", "-json", "-c", f"DESCRIBE FROM '{file}'"])
    return [column["column_name"] for column in json.loads(described)]


READERS = {
    "polars": lambda file: polars.read_ndjson(file).columns,
    "polars infer_schema_length=None": lambda file: polars.read_ndjson(file, infer_schema_length=None).columns,
    "duckdb 1.5.6": duckdb_program,
    "duckdb 2.0.1": lambda file: duckdb.sql(f"FROM '{file}'").columns,
    "duckdb 2.0.1 sample_size=-1": lambda file: duckdb.sql(f"FROM read_json('{file}', sample_size = -1)").columns,
    "pyarrow": lambda file: pyarrow.json.read_json(file).column_names,
    "pandas": lambda file: pandas.read_json(file, lines=True).columns,
}
for line in (100, 101, 20480, 20481):
    objects = [{"id": number} for number in range(1, line)] + [{"id": line, "source": "5"}]
    file = f"{line}.ndjson"
    with open(file, "w") as output:
        output.writelines(json.dumps(value) + "\n" for value in objects)
    found = [name for name, read in READERS.items() if "source" in read(file)]
    print(f"first in line {line}: found by", ", ".join(found))
END
cat seen
diff expected seen
