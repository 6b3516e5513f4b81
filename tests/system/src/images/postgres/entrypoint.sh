#!/bin/sh
# What the entry point of the image `postgres` does: creates the cluster on the first start, and runs the
# scripts for that.
set -eu
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # shellcheck disable=SC2086
    initdb --pgdata="$PGDATA" --username="$user" --pwfile="$POSTGRES_PASSWORD_FILE" --no-sync ${POSTGRES_INITDB_ARGS:-}
    # As the configuration of the image has it.
    echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
    echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
    pg_ctl --pgdata="$PGDATA" --wait --options="-c listen_addresses=''" start
    if [ "$database" != postgres ]; then createdb --username="$user" --maintenance-db=postgres "$database"; fi
    for script in /docker-entrypoint-initdb.d/*.sql; do
        [ ! -f "$script" ] || psql --no-psqlrc --no-password --set=ON_ERROR_STOP=1 --username="$user" \
            --dbname="$database" --file="$script"
    done
    pg_ctl --pgdata="$PGDATA" --wait --mode=fast stop
fi
exec "$@"
