-- Two weighted counters, of this minute and of the last one. Not exact: here for comparison only.
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local minute = math.floor(now / window)
local found = redis.call('HMGET', KEYS[1], 'minute', 'this', 'last')
local this, last = tonumber(found[2]) or 0, tonumber(found[3]) or 0
if tonumber(found[1]) ~= minute then
  last, this = tonumber(found[1]) == minute - 1 and this or 0, 0
end
local passed = now % window
if this + last * (1 - passed / window) >= limit then return {0, 0, window - passed} end
redis.call('HSET', KEYS[1], 'minute', minute, 'this', this + 1, 'last', last)
redis.call('PEXPIRE', KEYS[1], 2 * ARGV[3])
return {1, limit - this - 1, window - passed}
