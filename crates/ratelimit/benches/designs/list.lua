-- A list of at most `limit` admission times, each a whole number of microseconds since 1970: 10 bytes.
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local count = redis.call('LLEN', KEYS[1])
if count >= limit then
  local left = tonumber(redis.call('LINDEX', KEYS[1], -limit)) + window - now
  if left > 0 then return {0, 0, left} end
  redis.call('LPOP', KEYS[1])
end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, math.max(limit - count - 1, 0), window}
