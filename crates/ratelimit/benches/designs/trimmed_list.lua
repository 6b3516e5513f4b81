-- A list from which all times that have left the window are removed at once, so that `remaining` is exact as well. With
-- times in microseconds modulo 2^40 (10 bytes) it has all properties that the window needs.
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = (clock[1] * 1000000 + clock[2]) % 1099511627776
local left = window
while true do
  local oldest = redis.call('LINDEX', KEYS[1], 0)
  if not oldest then break end
  left = window - (now - tonumber(oldest)) % 1099511627776
  if left > 0 then break end
  redis.call('LPOP', KEYS[1])
end
local count = redis.call('LLEN', KEYS[1])
if count >= limit then return {0, 0, left} end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, limit - count - 1, left}
