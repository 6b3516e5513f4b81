#!/bin/sh
# Computes note hashes: sh note_hash.sh vectors.json   (/docs/note-hash/vectors.json; needs jq, xxd and b3sum)
set -eu

# The canonical bytes of each vector in hexadecimal, and its name.
# shellcheck disable=SC2016
canonical='
def byte: [. / 16, .] | map(floor % 16 | "0123456789abcdef"[.:.+1]) | join("");
def u32: [., . / 256, . / 65536, . / 16777216] | map(floor % 256 | byte) | join("");
.vectors[] | . as $vector | (.notes | map(.startUs) | min) as $first
| def milliseconds: (. - $first + 500) / 1000 | floor;
  [.notes[]
    | (.startUs | milliseconds) as $start | (.endUs // .startUs | milliseconds) as $until
    # A long note whose end is not after its start is a tap.
    | [$start, .column] + if $until > $start then [1, $until] else [0, 0] end]
  | (sort | map((.[0] | u32) + (.[1] | byte) + (.[2] | byte) + if .[2] == 1 then .[3] | u32 else "" end)) as $notes
| ($vector.keys | byte) + ($notes | join("")) + " " + $vector.name'

jq -r "$canonical" "$1" | while read -r bytes name; do
    printf '%s %s\n' "$(printf %s "$bytes" | xxd -r -p | b3sum --no-names)" "$name"
done
