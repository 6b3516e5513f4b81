-- The list of short times, with everything that has left taken out at once, so that `remaining` is true.
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = (clock[1] * 1000000 + clock[2]) % 2147483648
local left = window
while true do
  local oldest = redis.call('LINDEX', KEYS[1], 0)
  if not oldest then break end
  left = window - (now - tonumber(oldest)) % 2147483648
  if left > 0 then break end
  redis.call('LPOP', KEYS[1])
end
local count = redis.call('LLEN', KEYS[1])
if count >= limit then return {0, 0, left} end
redis.call('RPUSH', KEYS[1], now)
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000) + 1)
return {1, limit - count - 1, left}
