-- A list of at most `limit` admission times, in microseconds modulo 2^31: 6 bytes (ambiguous after 35 minutes).
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = (clock[1] * 1000000 + clock[2]) % 2147483648
local count = redis.call('LLEN', KEYS[1])
if count >= limit then
  local left = window - (now - tonumber(redis.call("LINDEX", KEYS[1], -limit))) % 2147483648
  if left > 0 then return {0, 0, left} end
  redis.call('LPOP', KEYS[1])
end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, math.max(limit - count - 1, 0), window}
