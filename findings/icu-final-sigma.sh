#!/usr/bin/env bash
# In a PostgreSQL database of the provider ICU, a title does not match its own beginning with ILIKE.
#
# ILIKE compares lower() of both sides. That of ICU follows Unicode: a Σ at the end of a word becomes ς, and the
# pattern `ΦΩΣ%` has one at its end, the title ΦΩΣΦΟΡΟΣ has σ there. LIKE finds it, so does ILIKE with the pattern
# in lower case. With the provider libc, lower() has no final sigma: the title is found, and ΦΩΣ not by φως. A
# match of regular expressions without case (`~*`) finds both with either provider.
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
icu: lower(ΦΩΣ) is φως
icu: ΦΩΣΦΟΡΟΣ: LIKE ΦΩΣ% t, ILIKE ΦΩΣ% f, ILIKE φωσ% t, ~* ^ΦΩΣ t
icu: ΦΩΣ: ILIKE φωσ f, ILIKE φως t, ~* φωσ t, ~* φως t
libc: lower(ΦΩΣ) is φωσ
libc: ΦΩΣΦΟΡΟΣ: LIKE ΦΩΣ% t, ILIKE ΦΩΣ% t, ILIKE φωσ% t, ~* ^ΦΩΣ t
libc: ΦΩΣ: ILIKE φωσ t, ILIKE φως f, ~* φωσ t, ~* φως t
END
show() { # PROVIDER ARGUMENTS OF initdb
    local data=$folder/$1
    as_owner "$binaries/initdb" -D "$data" -E UTF8 --no-sync --auth trust "${@:2}" >log
    as_owner "$binaries/pg_ctl" -D "$data" --wait --log "$data/log" \
        -o "-c listen_addresses= -c unix_socket_directories=$folder -c fsync=off" start >log
    started+=("$data")
    "$binaries/psql" --host "$folder" --username postgres --quiet --no-psqlrc --tuples-only --no-align <<END
SELECT format('$1: lower(ΦΩΣ) is %s', lower('ΦΩΣ'));
SELECT format('$1: %s: LIKE ΦΩΣ%% %s, ILIKE ΦΩΣ%% %s, ILIKE φωσ%% %s, ~* ^ΦΩΣ %s', title,
    title LIKE 'ΦΩΣ%', title ILIKE 'ΦΩΣ%', title ILIKE 'φωσ%', title ~* '^ΦΩΣ') FROM (VALUES ('ΦΩΣΦΟΡΟΣ')) AS titles (title);
SELECT format('$1: %s: ILIKE φωσ %s, ILIKE φως %s, ~* φωσ %s, ~* φως %s', title,
    title ILIKE 'φωσ', title ILIKE 'φως', title ~* 'φωσ', title ~* 'φως') FROM (VALUES ('ΦΩΣ')) AS titles (title);
END
    as_owner "$binaries/pg_ctl" -D "$data" -m immediate stop >log
    started=()
}
{
    show icu --locale-provider=icu --icu-locale=und --locale=C.UTF-8
    show libc --locale=C.UTF-8
} >seen
cat seen
diff expected seen
