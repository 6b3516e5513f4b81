#!/bin/sh
# Uses a chart index: sh client.sh https://charts.example   (curl 7.70 or newer, jq)
set -eu
base=$1
cache=$(mktemp -d) # keep it, so that the next run uses it
trap 'rm -rf "$cache"' EXIT

# get PATH [OPTIONS OF curl]: writes the JSON at a path to $json. Sends the ETag of an earlier response. On 429
# and 503 curl waits as long as Retry-After says.
get() {
    path=$1
    shift
    json=$cache/$(printf %s "$path $*" | cksum | tr ' ' -)
    status=$(curl --silent --show-error --get --retry 3 --user-agent 'example-client/1.0 (me@example.org)' \
        --etag-compare "$json.tag" --etag-save "$json.new" --output "$json.body" --write-out '%{http_code}' "$@" "$base$path")
    case $status in
        200) mv "$json.new" "$json.tag"; mv "$json.body" "$json" ;;
        304) echo "not modified" >&2 ;; # $json is current
        *) jq -r '"\(.status) \(.title): \(.detail)"' "$json.body" >&2; exit 1 ;;
    esac
}

page=1
while
    get /api/chartsets --data-urlencode q=harbour --data sort=title --data perPage=1 --data "page=$page"
    jq -r '.items[] | "\(.id) \(.title)"' "$json"
    [ "$(jq '.page * .perPage < .total' "$json")" = true ]
do
    page=$((page + 1))
done

get "/api/chartsets/$(jq -r '.items[0].id' "$json")"
hash=$(jq -r '.charts[0].chart.hash' "$json")
get "/api/charts/$hash"
get "/api/charts/$hash" # the second time it is not modified
jq -r '"\(.status) \(.sources[0].ref)"' "$json"
