#!/usr/bin/env bash
# A full Redis refuses a script that begins with SET, and runs one that begins with DEL of a missing key.
#
# Redis checks `maxmemory` for each command of a script, but not behind the first command that may write, since
# it does not stop a script halfway. Whether that command wrote anything does not matter, nor whether it needs
# memory: after ZREMRANGEBYSCORE, DEL or PEXPIRE, which are never refused, a script may write any number of
# bytes. So a sliding window that first removes old entries counts on when Redis is full, and one that first
# adds does not. In a transaction the same commands are refused. A script that names its flags, with `#!lua`, is
# refused as a whole.
#
# 2026-11-28: redis-server 7.0.15 of Debian 12.
set -euo pipefail
folder=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server" && wait "$server"; fi; rm -rf "$folder"' EXIT
cd "$folder"

redis-server --version | cut -d ' ' -f 1-3
options=(--port 0 --unixsocket "$folder/socket" --dir "$folder" --save '' --maxmemory-policy noeviction)
redis-server "${options[@]}" >server.log &
server=$!
for _ in $(seq 100); do
    if [ "$(redis-cli -s socket PING 2>&1)" = PONG ]; then break; fi
    sleep 0.1
done
redis-cli -s socket CONFIG SET maxmemory 1 >log

try() { # NAME SCRIPT
    local reply
    reply=$(redis-cli -s socket EVAL "$2" 1 key 2>&1)
    printf '%s: %s\n' "$1" "$(head -n 1 <<<"${reply%% when*}")"
}

cat >expected <<'END'
SET: OOM command not allowed
GET, then SET: OOM command not allowed
DEL of a missing key, then SET of 1 MB: OK
ZREMRANGEBYSCORE of a missing key, then ZADD: 1
PEXPIRE of a missing key, then SET: OK
with #!lua, DEL of a missing key, then SET: OOM command not allowed
a transaction of DEL and SET: EXECABORT Transaction discarded because of previous errors.
END
{
    try 'SET' "return redis.call('SET', KEYS[1], 1)"
    try 'GET, then SET' "redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], 1)"
    try 'DEL of a missing key, then SET of 1 MB' \
        "redis.call('DEL', 'none') return redis.call('SET', KEYS[1], string.rep('x', 1000000))"
    try 'ZREMRANGEBYSCORE of a missing key, then ZADD' \
        "redis.call('ZREMRANGEBYSCORE', 'none', 0, 1) return redis.call('ZADD', 'window', 1, 'entry')"
    try 'PEXPIRE of a missing key, then SET' \
        "redis.call('PEXPIRE', 'none', 1) return redis.call('SET', KEYS[1], 1)"
    try 'with #!lua, DEL of a missing key, then SET' "#!lua
redis.call('DEL', 'none') return redis.call('SET', KEYS[1], 1)"
    reply=$(printf 'MULTI\nDEL none\nSET key 1\nEXEC\n' | redis-cli -s socket 2>&1)
    printf 'a transaction of DEL and SET: %s\n' "$(sed -n '/^EXECABORT/p' <<<"$reply")"
} >seen
cat seen
diff expected seen
