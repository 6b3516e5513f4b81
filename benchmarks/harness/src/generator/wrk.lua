-- Requests for wrk: the lines of a file of paths in turn, each from a random client address in X-Forwarded-For.
--
--   wrk -s wrk.lua URL -- PATHS CLIENTS SEED [HEADER...]
--
-- Prints a line of JSON at the end.
local thread_count = 0

function setup(thread)
  thread:set('thread_number', thread_count)
  thread_count = thread_count + 1
end

-- Addresses are 10.0.0.0 plus a number: the first three bytes and the last one come from tables.
local paths, high, low, clients, next_path = {}, {}, {}, 0, 0
local random = math.random

function init(arguments)
  for line in io.lines(arguments[1]) do paths[#paths + 1] = line end
  clients = tonumber(arguments[2])
  math.randomseed(tonumber(arguments[3]) * 1000 + thread_number)
  local tail = {}
  for i = 4, #arguments do tail[#tail + 1] = arguments[i] .. '\r\n' end
  tail = '\r\n' .. table.concat(tail) .. '\r\n'
  for byte = 0, 255 do low[byte] = byte .. tail end
  local middle = ' HTTP/1.1\r\nHost: ' .. wrk.headers['Host'] .. '\r\nX-Forwarded-For: '
  for number = 0, math.floor((clients - 1) / 256) do
    high[number] = middle .. '10.' .. math.floor(number / 256) .. '.' .. number % 256 .. '.'
  end
  next_path = random(#paths) - 1
end

function request()
  next_path = next_path % #paths + 1
  local client = random(0, clients - 1)
  local byte = client % 256
  return 'GET ' .. paths[next_path] .. high[(client - byte) / 256] .. low[byte]
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"microseconds":%d,"bytes":%d,"errors":%d,"statuses":%d,"timeouts":%d}\n',
    summary.requests, summary.duration, summary.bytes,
    errors.connect + errors.read + errors.write, errors.status, errors.timeout))
end
