#!/bin/sh
# Creates the API keys of this folder on the node MEILISEARCH_URL, unless it has them. The master key is in the
# file MASTER_KEY_FILE. Each key has a fixed uid, so its value is the same on every node and after a loss of all
# data: HMAC-SHA256 of the uid by the master key, in hexadecimal.
set -eu
cd "$(dirname "$0")"

request() { # METHOD PATH [FILE]: prints the response, and its status on a line of its own
    # The key is no argument, which other processes could read.
    printf 'header = "Authorization: Bearer %s"\n' "$(cat "$MASTER_KEY_FILE")" |
        curl --config - --silent --show-error --max-time 10 --retry 5 --retry-connrefused --write-out '\n%{http_code}\n' \
            --request "$1" --header 'Content-Type: application/json' ${3:+--data "@$3"} "$MEILISEARCH_URL$2"
}

status() { printf '%s\n' "$1" | tail -n 1; }

field() { # NAME: the value of a string or an array in the JSON on standard input, without white space
    tr -d ' \n' | sed -n "s/.*\"$1\":\(\"[^\"]*\"\|\[[^]]*\]\).*/\1/p"
}

for file in *.json; do
    uid=$(field uid <"$file" | tr -d '"')
    found=$(request GET "/keys/$uid")
    case $(status "$found") in
        200)
            same=yes
            for name in actions indexes; do
                [ "$(printf '%s' "$found" | field "$name")" = "$(field "$name" <"$file")" ] || same=no
            done
            if [ "$same" = yes ]; then
                echo "$file: exists"
                continue
            fi
            # Actions and indexes of a key cannot be changed. Until it is back, PostgreSQL answers lists.
            [ "$(status "$(request DELETE "/keys/$uid")")" = 204 ] || { echo "$file: cannot be replaced" >&2; exit 1; }
            ;;
        404) ;;
        *) echo "$file: $found" >&2; exit 1 ;;
    esac
    created=$(request POST /keys "$file")
    [ "$(status "$created")" = 201 ] || { echo "$file: $created" >&2; exit 1; }
    echo "$file: created"
done
