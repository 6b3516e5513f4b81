#!/usr/bin/env bash
# A database with the provider ICU and `LC_CTYPE=C` folds case in every script, and has trigrams of ASCII only.
#
# `initdb --locale-provider=icu --locale=C` is a common way to get the order of ICU without a locale of the
# operating system. lower() and ILIKE follow ICU then. pg_trgm takes what a letter is from `LC_CTYPE`: Japanese
# text has no trigrams, and its similarity to itself is 0. A trigram index gives the right rows all the same: it
# returns every row of the table, and each is read and compared. With `LC_CTYPE=C.UTF-8` it finds the row.
#
# 2026-11-28: PostgreSQL 15 of Debian 12.
set -euo pipefail
folder=$(mktemp -d)
binaries=/usr/lib/postgresql/15/bin
as_owner() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
started=()
trap 'for data in "${started[@]}"; do as_owner "$binaries/pg_ctl" -D "$data" -m immediate stop >/dev/null; done
    rm -rf "$folder"' EXIT
chmod 755 "$folder"
if [ "$(id -u)" = 0 ]; then chown postgres "$folder"; fi
cd "$folder"

"$binaries/postgres" --version
cat >expected <<'END'
icu, LC_CTYPE C: lower(É) é, trigrams of 日本語 0, similarity to itself 0, rows from the index 1001
icu, LC_CTYPE C.UTF-8: lower(É) é, trigrams of 日本語 4, similarity to itself 1, rows from the index 1
libc, LC_CTYPE C: lower(É) É, trigrams of 日本語 0, similarity to itself 0, rows from the index 1001
END
query() {
    "$binaries/psql" --host "$folder" --username postgres --quiet --no-psqlrc --tuples-only --no-align "$@"
}
show() { # PROVIDER LC_CTYPE ARGUMENTS OF initdb
    local data=$folder/$1-$2
    as_owner "$binaries/initdb" -D "$data" -E UTF8 --no-sync --auth trust "${@:3}" >log
    as_owner "$binaries/pg_ctl" -D "$data" --wait --log "$data/log" \
        -o "-c listen_addresses= -c unix_socket_directories=$folder -c fsync=off" start >log
    started+=("$data")
    query >log <<'END'
CREATE EXTENSION pg_trgm;
CREATE TABLE titles (title text);
INSERT INTO titles SELECT '歌' || number FROM generate_series(1, 1000) AS number;
INSERT INTO titles VALUES ('日本語の歌');
CREATE INDEX ON titles USING gin (title gin_trgm_ops);
ANALYZE titles;
END
    local plan rows
    plan=$(query -c "SET enable_seqscan = off" -c "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
        SELECT FROM titles WHERE title LIKE '%日本語%'")
    rows=$(sed -n 's/.*Bitmap Index Scan.*actual rows=\([0-9]*\).*/\1/p' <<<"$plan")
    query -c "SELECT format('$1, LC_CTYPE $2: lower(É) %s, trigrams of 日本語 %s, similarity to itself %s, rows '
        'from the index $rows', lower('É'), cardinality(show_trgm('日本語')), similarity('日本語', '日本語'))"
    as_owner "$binaries/pg_ctl" -D "$data" -m immediate stop >log
    started=()
}
{
    show icu C --locale-provider=icu --icu-locale=und --locale=C
    show icu C.UTF-8 --locale-provider=icu --icu-locale=und --locale=C.UTF-8
    show libc C --locale=C
} >seen
cat seen
diff expected seen
