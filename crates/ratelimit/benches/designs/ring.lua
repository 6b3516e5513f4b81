-- A ring in one string: a counter of 5 bytes, then `limit` slots of 5 bytes, microseconds modulo 2^40.
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = (clock[1] * 1000000 + clock[2]) % 1099511627776
local header = redis.call('GETRANGE', KEYS[1], 0, 4)
local count = header == '' and 0 or struct.unpack('>I5', header)
local slot = 5 + (count % limit) * 5
if count >= limit then
  local oldest = struct.unpack('>I5', redis.call('GETRANGE', KEYS[1], slot, slot + 4))
  local left = window - (now - oldest) % 1099511627776
  if left > 0 then return {0, 0, left} end
end
redis.call('SETRANGE', KEYS[1], slot, struct.pack('>I5', now))
redis.call('SETRANGE', KEYS[1], 0, struct.pack('>I5', count + 1))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, math.max(limit - count - 1, 0), window}
