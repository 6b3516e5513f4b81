#!/usr/bin/env bash
# FTS5 of SQLite takes a word of Hindi, Thai or Burmese for several, and pointed Hebrew and Arabic too.
#
# The tokenizer unicode61 takes letters and digits for parts of words, and marks (Unicode category M) for what is
# between them: a word ends at each vowel sign. So `नमस` finds नमस्ते, and Thai titles become single letters that
# many others have. With `categories 'L* N* Co M*'` each is one word.
#
# 2026-11-28: apsw 3.54.1.0 of PyPI, which has SQLite 3.54.1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check apsw==3.54.1.0

cat >expected <<'END'
unicode61: नमस्ते is नमस|त
unicode61: เพลงรัก is เพลงร|ก
unicode61: မြန်မာ is မ|န|မ
unicode61: שָׁלוֹם is ש|לו|ם
unicode61: مَرْحَبًا is م|ر|ح|ب|ا
unicode61: `नमस` finds नमस्ते
unicode61 categories 'L* N* Co M*': नमस्ते is नमस्ते
unicode61 categories 'L* N* Co M*': เพลงรัก is เพลงรัก
unicode61 categories 'L* N* Co M*': မြန်မာ is မြန်မာ
unicode61 categories 'L* N* Co M*': שָׁלוֹם is שָׁלוֹם
unicode61 categories 'L* N* Co M*': مَرْحَبًا is مَرْحَبًا
unicode61 categories 'L* N* Co M*': `नमस` finds nothing
END
env/bin/python - >seen <<'END'
import apsw

TITLES = ["नमस्ते", "เพลงรัก", "မြန်မာ", "שָׁלוֹם", "مَرْحَبًا"]
for tokenizer in ("unicode61", "unicode61 categories 'L* N* Co M*'"):
    database = apsw.Connection(":memory:")
    database.execute(f'CREATE VIRTUAL TABLE titles USING fts5 (title, tokenize = "{tokenizer}")')
    database.execute("CREATE VIRTUAL TABLE words USING fts5vocab (titles, instance)")
    database.executemany("INSERT INTO titles VALUES (?)", [(title,) for title in TITLES])
    for number, title in enumerate(TITLES, 1):
        words = database.execute("SELECT term FROM words WHERE doc = ? ORDER BY offset", (number,))
        print(f"{tokenizer}: {title} is", "|".join(word for (word,) in words))
    found = [title for (title,) in database.execute("SELECT title FROM titles WHERE titles MATCH 'नमस'")]
    print(f"{tokenizer}: `नमस` finds {found[0] if found else 'nothing'}")
END
cat seen
diff expected seen
