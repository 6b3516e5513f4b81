#!/bin/sh
# Dumps of the database, for the services `backup` and `backup-copy` of docker-compose.yml.
# docs/operations/recovery.md describes it.
#
#   backup.sh                 dumps whenever the last dump is older than BACKUP_HOURS (24)
#   backup.sh copy            copies each new dump to BACKUP_REMOTE, a remote of rclone
#   backup.sh once            dumps now, and keeps the last BACKUP_KEEP (14) dumps
#   backup.sh prune N         deletes all but the last N dumps
#   backup.sh restore FILE    replaces the database by a dump. Nothing else may use the database meanwhile
#   backup.sh check           whether the last dump is recent
#
# BACKUPS is their folder, with the metrics of the last dump and the last copy. The database is that of PGHOST,
# PGPORT, PGUSER and PGDATABASE, with the password in PASSWORD_FILE.
set -eu
cd "$BACKUPS"
hours=${BACKUP_HOURS:-24}
if [ -n "${PASSWORD_FILE:-}" ]; then PGPASSWORD=$(cat "$PASSWORD_FILE"); export PGPASSWORD; fi

# The names sort by time.
dumps() { find . -name 'chart_index-*.dump' | sort; }

newest() { dumps | tail -n 1; }

recent() { # MINUTES: whether there is a dump of the last minutes
    [ -n "$(find . -name 'chart_index-*.dump' -mmin "-$1")" ]
}

prune() { # N
    dumps | sort -r | tail -n "+$(($1 + 1))" | xargs -r rm --
}

dump() {
    name=chart_index-$(date -u +%Y%m%dT%H%M%SZ).dump
    rm -f ./*.partial
    # A file with this name is complete. `set -e` does not apply where the result of this function is used.
    if ! pg_dump --format=custom --compress=1 --file "$name.partial"; then
        # On a full disk nothing else could be written.
        rm -f ./*.partial
        return 1
    fi
    mv "$name.partial" "$name"
    echo "wrote $name"
    prune "${BACKUP_KEEP:-14}"
}

copy() {
    name=$(newest)
    rclone copy --include 'chart_index-*.dump' . "$BACKUP_REMOTE" || return 1
    copied=$name
    echo "copied $name"
}

is_due() { # dump|copy
    case $1 in
        dump) ! recent "$((hours * 60))" ;;
        copy) [ "$(newest)" != "$copied" ] ;;
    esac
}

report() { # dump|copy FAILED: writes metrics for node-exporter: of the last dump or the last one that is copied, and of the last failure
    last=$copied
    [ "$1" = copy ] || last=$(newest)
    time=0 bytes=0
    if [ -f "$last" ]; then time=$(stat -c %Y "$last") bytes=$(stat -c %s "$last"); fi
    cat >"$1.new" <<END || { rm -f "$1.new"; return 0; }
# HELP chart_index_backup_last_success_seconds Unix time of the last dump, or of the last one that was copied; 0 without one
# TYPE chart_index_backup_last_success_seconds gauge
chart_index_backup_last_success_seconds{chart_index_backup="$1"} $time
# HELP chart_index_backup_last_failure_seconds Unix time of the last failure since the start of the service; 0 without one
# TYPE chart_index_backup_last_failure_seconds gauge
chart_index_backup_last_failure_seconds{chart_index_backup="$1"} $2
# HELP chart_index_backup_size_bytes Size of this dump
# TYPE chart_index_backup_size_bytes gauge
chart_index_backup_size_bytes{chart_index_backup="$1"} $bytes
# HELP chart_index_backup_interval_seconds BACKUP_HOURS
# TYPE chart_index_backup_interval_seconds gauge
chart_index_backup_interval_seconds{chart_index_backup="$1"} $((hours * 3600))
END
    mv "$1.new" "$1.prom"
}

serve() { # dump|copy: permanently
    # Of a process with the id 1, only what it handles arrives.
    trap 'kill ${!:+"$!"} 2>/dev/null || true; exit 0' TERM
    failed=0 copied=''
    while true; do
        if is_due "$1" && ! "$1"; then
            failed=$(date +%s)
            echo "the $1 failed, and is tried again in 10 minutes" >&2
        fi
        report "$1" "$failed"
        sleep 600 &
        wait "$!"
    done
}

restore() { # FILE
    [ -f "$1" ] || { echo "no such dump: $1" >&2; exit 1; }
    # Reads all of it before anything is deleted.
    pg_restore --file /dev/null "$1"
    # Without the names of all that is deleted, and of the system tables that only a superuser may vacuum.
    export PGOPTIONS=--client-min-messages=error
    psql --quiet --set ON_ERROR_STOP=1 --command 'DROP SCHEMA public CASCADE' --command 'CREATE SCHEMA public'
    pg_restore --exit-on-error --no-owner --jobs 2 --dbname "$PGDATABASE" "$1"
    psql --quiet --command 'VACUUM (ANALYZE)'
    echo "restored $1"
}

case "${1:-}" in
    "") serve dump ;;
    copy) serve copy ;;
    once) dump ;;
    prune) prune "${2:?number}" ;;
    restore) restore "${2:?file}" ;;
    check) recent "$((hours * 60 + 60))" ;;
    *) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
