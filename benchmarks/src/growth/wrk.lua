-- Sends the requests of the file REQUESTS in turn: each ends with a zero byte. `done` prints the figures of the run.
local requests, count, at = {}, 0, 0

function init()
  local file = assert(io.open(os.getenv('REQUESTS'), 'rb'))
  for request in file:read('*a'):gmatch('[^%z]+') do
    count = count + 1
    requests[count] = request
  end
  file:close()
end

function request()
  at = at % count + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('figures %d %d %d %d %d\n', summary.requests, summary.duration, errors.status,
    errors.connect + errors.read + errors.write, latency:percentile(50)))
end
