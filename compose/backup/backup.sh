#!/bin/sh
# Dumps of the database, for the service `backup` of docker-compose.yml. docs/operations/recovery.md describes it.
#
#   backup.sh                 dumps whenever the last dump is older than BACKUP_HOURS (24)
#   backup.sh once            dumps now, and keeps the last BACKUP_KEEP (14) dumps
#   backup.sh restore FILE    replaces the database by a dump. Nothing else may use the database meanwhile
#   backup.sh check           whether the last dump is recent
#
# BACKUPS is their folder. The database is that of PGHOST, PGPORT, PGUSER and PGDATABASE, with the password in
# PASSWORD_FILE.
set -eu
cd "$BACKUPS"
hours=${BACKUP_HOURS:-24}
keep=${BACKUP_KEEP:-14}
if [ -n "${PASSWORD_FILE:-}" ]; then PGPASSWORD=$(cat "$PASSWORD_FILE"); export PGPASSWORD; fi

recent() { # MINUTES: whether there is a dump of the last minutes
    [ -n "$(find . -name 'chart_index-*.dump' -mmin "-$1")" ]
}

once() {
    name=chart_index-$(date -u +%Y%m%dT%H%M%SZ).dump
    # A file with this name is complete.
    rm -f ./*.partial
    # `set -e` does not apply where the result of this function is used.
    pg_dump --format=custom --compress=1 --file "$name.partial" || return 1
    mv "$name.partial" "$name"
    echo "wrote $name"
    # By age: the names sort by time.
    find . -name 'chart_index-*.dump' | sort -r | tail -n "+$((keep + 1))" | xargs -r rm --
}

restore() { # FILE
    [ -f "$1" ] || { echo "no such dump: $1" >&2; exit 1; }
    # Reads all of it before anything is deleted.
    pg_restore --file /dev/null "$1"
    psql --quiet --set ON_ERROR_STOP=1 --command 'DROP SCHEMA public CASCADE' --command 'CREATE SCHEMA public'
    pg_restore --exit-on-error --no-owner --jobs 2 --dbname "$PGDATABASE" "$1"
    psql --quiet --command 'VACUUM (ANALYZE)'
}

case "${1:-}" in
    "")
        # Of a process with the id 1, only what it handles arrives.
        trap 'kill ${!:+"$!"} 2>/dev/null || true; exit 0' TERM
        while true; do
            recent "$((hours * 60))" || once || echo "the dump failed, and is tried again in 10 minutes" >&2
            sleep 600 &
            wait "$!"
        done
        ;;
    once) once ;;
    restore) restore "${2:?file}" ;;
    check) recent "$((hours * 60 + 60))" ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
