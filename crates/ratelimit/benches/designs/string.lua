-- A string of the admission times that still count, 5 bytes each, oldest first, read and written as a whole.
local SIZE, CYCLE = 5, 1099511627776
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = redis.call('TIME')
local now = (clock[1] * 1000000 + clock[2]) % CYCLE
local unpack_time = struct.unpack

-- A value of another type, or of an invalid length, counts as empty and is replaced.
local times = redis.pcall('GET', KEYS[1])
if type(times) ~= 'string' or #times % SIZE ~= 0 then
  times = ''
end
local count = #times / SIZE
local admitted = struct.pack('>I5', now)

-- The request is refused if the newest `limit` times are all in the window. A refusal writes nothing.
local live = count - limit
if live >= 0 then
  local age = (now - unpack_time('>I5', times, live * SIZE + 1)) % CYCLE
  if age < window then
    return {0, 0, window - age}
  elseif age >= CYCLE / 2 then
    -- A time in the future: the clock of this server was set back, or the value is corrupt. Count all times as now.
    redis.call('SET', KEYS[1], string.rep(admitted, limit), 'PX', ARGV[3])
    return {0, 0, window}
  end
end

-- Skip the times that have left the window, usually none or one since the last admission.
live = math.max(live + 1, 0)
local age = 0
while live < count do
  age = (now - unpack_time('>I5', times, live * SIZE + 1)) % CYCLE
  if age < window or age >= CYCLE / 2 then break end
  live = live + 1
end
local counted = live > 0 and string.sub(times, live * SIZE + 1) or times
redis.call('SET', KEYS[1], counted .. admitted, 'PX', ARGV[3])
local left = live < count and age < window and window - age or window
return {1, limit - (count - live) - 1, left}
