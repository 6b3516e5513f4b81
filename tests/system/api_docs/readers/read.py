"""Reads the files of an index in the current folder with libraries of PyPI.

Prints the rows of tables in docs/formats.
"""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

ROWS = json.loads(Path("charts.json").read_text())
# A column without NULL, one of 64 bits, and one with NULL.
TYPED = ("keys", "length_ms", "source_ref")


def show(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def verdict(check):
    try:
        return "yes" if check() else "no"
    except Exception as error:
        return f"error: {error}".splitlines()[0]


def parquet_readers():
    import chdb
    import datafusion
    import duckdb
    import fastparquet
    import pandas
    import polars
    import pyarrow.parquet

    def of_frame(frame):
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        return rows, {name: str(kind) for name, kind in frame.dtypes.items()}

    def of_table(table):
        return table.to_pylist(), {field.name: str(field.type) for field in table.schema}

    def of_polars():
        frame = polars.read_parquet("catalogue.parquet")
        return frame.rows(named=True), {name: str(kind) for name, kind in frame.schema.items()}

    def of_duckdb(run):
        described = run("DESCRIBE FROM 'catalogue.parquet'")
        return run("FROM 'catalogue.parquet'"), {row["column_name"]: row["column_type"] for row in described}

    def duckdb_module(query):
        result = duckdb.sql(query)
        return [dict(zip(result.columns, row)) for row in result.fetchall()]

    def duckdb_program(query):
        return json.loads(subprocess.check_output([f"{sys.prefix}/bin/duckdb", "-json", "-c", query]))

    def of_clickhouse():
        def run(query):
            return [json.loads(line) for line in str(chdb.query(query, "JSONEachRow")).splitlines()]

        described = run("DESCRIBE file('catalogue.parquet')")
        rows = run("SELECT * FROM file('catalogue.parquet') SETTINGS output_format_json_quote_64bit_integers = 0")
        return rows, {row["name"]: row["type"] for row in described}

    context = datafusion.SessionContext()
    readers = {
        "pandas": ("pandas", lambda: of_frame(pandas.read_parquet("catalogue.parquet", engine="pyarrow"))),
        "fastparquet": ("fastparquet", lambda: of_frame(fastparquet.ParquetFile("catalogue.parquet").to_pandas())),
        "PyArrow": ("pyarrow", lambda: of_table(pyarrow.parquet.read_table("catalogue.parquet"))),
        "Polars": ("polars", of_polars),
        "DataFusion": ("datafusion", lambda: of_table(context.read_parquet("catalogue.parquet").to_arrow_table())),
        "DuckDB 1.5": ("duckdb-cli", lambda: of_duckdb(duckdb_program)),
        "DuckDB 2.0": ("duckdb", lambda: of_duckdb(duckdb_module)),
        "ClickHouse": ("chdb", of_clickhouse),
    }
    for name, (package, read) in readers.items():
        rows, types = read()
        cells = [f"`{types[column]}`" for column in TYPED]
        show(name, f"{package} {version(package)}", "yes" if rows == ROWS else "no", *cells)


def sqlite_readers():
    import apsw

    database = apsw.Connection("catalogue.sqlite", flags=apsw.SQLITE_OPEN_READONLY)
    statement = (
        "SELECT id, hash, variant, difficulty, bpm_main, length_ms, source_ref, updated_at_ms"
        " FROM charts JOIN chartsets ON number = chartset ORDER BY id, hash"
    )
    names = [name.split()[-1] for name in statement.removeprefix("SELECT ").split(" FROM ")[0].split(", ")]
    Path("statement.json").write_text(json.dumps([statement, names]))

    def values():
        text = [[cell.hex() if isinstance(cell, bytes) else cell for cell in row] for row in database.execute(statement)]
        return text == [[row[name] for name in names] for row in ROWS]

    def words():
        found = database.execute("SELECT count(*) FROM chartset_words WHERE chartset_words MATCH '\"harbour\"'")
        return found.fetchone() == (2,)

    show("APSW", version("apsw"), verdict(values), verdict(words))


def zstd_readers():
    import zstandard
    from backports import zstd

    expected = Path("chartsets.ndjson").read_bytes()
    content = Path("chartsets.ndjson.zst").read_bytes()
    for package, read in (
        ("zstandard", lambda: zstandard.ZstdDecompressor().stream_reader(content).read()),
        ("backports.zstd", lambda: zstd.decompress(content)),
    ):
        show(package, version(package), verdict(lambda: read() == expected))


def minisign_readers():
    import minisign

    key = minisign.PublicKey.from_file("export.pub")
    signature = minisign.Signature.from_file("manifest.json.minisig")
    manifest = Path("manifest.json").read_bytes()

    def refuses():
        try:
            key.verify(manifest + b" ", signature)
        except minisign.VerifyError:
            return True
        return False

    def comment():
        key.verify(manifest, signature)
        return signature.trusted_comment == f"export {Path('name').read_text()}"

    show("py-minisign", version("py-minisign"), verdict(comment), verdict(refuses))


def feed_readers():
    import feedparser
    import feedparser_rs

    atom = "{http://www.w3.org/2005/Atom}"

    def of_element(entry):
        texts = [entry.findtext(atom + name) for name in ("id", "title", "updated", "summary")]
        return [*texts, entry.findtext(f"{atom}author/{atom}name"), entry.find(atom + "link").get("href")]

    expected = [of_element(entry) for entry in ElementTree.parse("feed.atom").getroot().iter(atom + "entry")]
    Path("entries.json").write_text(json.dumps(expected))

    def of_entry(entry):
        return [entry.id, entry.title, entry.updated, entry.summary, entry.author, entry.link]

    for package, module in (("feedparser", feedparser), ("feedparser-rs", feedparser_rs)):
        entries = module.parse(Path("feed.atom").read_text()).entries
        show(package, version(package), verdict(lambda: list(map(of_entry, entries)) == expected))


def openapi_readers():
    import openapi_spec_validator
    import prance

    document = json.loads(Path("openapi.json").read_text())

    def validates():
        openapi_spec_validator.validate(document)
        return True

    def resolves():
        parser = prance.ResolvingParser("openapi.json", backend="openapi-spec-validator")
        return parser.specification["paths"].keys() == document["paths"].keys()

    for package, read in (("openapi-spec-validator", validates), ("prance", resolves)):
        show(package, version(package), verdict(read))


for readers in (parquet_readers, sqlite_readers, zstd_readers, minisign_readers, feed_readers, openapi_readers):
    readers()
