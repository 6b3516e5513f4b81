#!/usr/bin/env bash
# FTS5 of SQLite finds Beyoncé by `beyonce`, and does not find Phở by `pho`.
#
# The tokenizer unicode61 removes the mark of a letter with one mark by default. The last letter of Phở has a
# horn and a hook, as many vowels of Vietnamese have two marks, and keeps both. `remove_diacritics 2` removes
# them. The mark of Cyrillic ё stays with either, so neither finds Ёлка by the spelling with е.
#
# 2026-11-28: apsw 3.54.1.0 of PyPI, which has SQLite 3.54.1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check apsw==3.54.1.0

cat >expected <<'END'
unicode61: beyonce finds Beyoncé
unicode61: pho finds nothing
unicode61: елка finds nothing
unicode61 remove_diacritics 2: beyonce finds Beyoncé
unicode61 remove_diacritics 2: pho finds Phở
unicode61 remove_diacritics 2: елка finds nothing
END
env/bin/python - >seen <<'END'
import apsw

for tokenizer in ("unicode61", "unicode61 remove_diacritics 2"):
    database = apsw.Connection(":memory:")
    database.execute(f"CREATE VIRTUAL TABLE titles USING fts5 (title, tokenize = '{tokenizer}')")
    database.executemany("INSERT INTO titles VALUES (?)", [("Beyoncé",), ("Phở",), ("Ёлка",)])
    for word in ("beyonce", "pho", "елка"):
        found = [title for (title,) in database.execute("SELECT title FROM titles WHERE titles MATCH ?", (word,))]
        print(f"{tokenizer}: {word} finds {found[0] if found else 'nothing'}")
END
cat seen
diff expected seen
