-- Requests for wrk: the lines of a file in turn, each from a random client address in X-Forwarded-For.
--
--   wrk -s wrk.lua URL -- REQUESTS CLIENTS NUMBER
--
-- A line has the fields of a request, separated by tabs: the request line, and headers. NUMBER selects the
-- addresses and where in the file to begin. Prints a line of JSON at the end.
local threads = 0

function setup(thread)
  thread:set('thread_number', threads)
  threads = threads + 1
end

-- Addresses are 10.0.0.0 plus a number: the first three bytes and the last one come from tables.
local heads, high, low, clients, line_number = {}, {}, {}, 0, 0
local random = math.random

function init(arguments)
  for line in io.lines(arguments[1]) do
    heads[#heads + 1] = string.gsub(line, '\t', '\r\n')
  end
  clients = tonumber(arguments[2])
  math.randomseed(tonumber(arguments[3]) * 1000 + thread_number)
  for byte = 0, 255 do low[byte] = byte .. '\r\n\r\n' end
  local middle = '\r\nHost: ' .. wrk.headers['Host'] .. '\r\nX-Forwarded-For: '
  for number = 0, math.floor((clients - 1) / 256) do
    high[number] = middle .. '10.' .. math.floor(number / 256) .. '.' .. number % 256 .. '.'
  end
  line_number = random(#heads) - 1
end

function request()
  line_number = line_number % #heads + 1
  local client = random(0, clients - 1)
  local byte = client % 256
  return heads[line_number] .. high[(client - byte) / 256] .. low[byte]
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"microseconds":%d,"bytes":%d,"errors":%d,"statuses":%d,"timeouts":%d}\n',
    summary.requests, summary.duration, summary.bytes,
    errors.connect + errors.read + errors.write, errors.status, errors.timeout))
end
