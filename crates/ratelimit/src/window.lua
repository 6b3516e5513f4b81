-- Decides whether a request is within the sliding window of one key, and counts it if it is.
--
-- KEYS[1]  the window of one (group, address)
-- ARGV[1]  the limit: the maximum number of admissions in any window
-- ARGV[2]  the length of the window in microseconds
-- ARGV[3]  the time to live of the key in milliseconds, which is more than the window
-- ARGV[4]  optional, for a dry run: nothing is counted, and {1} means "would be admitted"
-- Returns  {1, remaining, microseconds until the oldest admission leaves the window}  if the request is admitted
--          {0, 0,         microseconds until the next request can be admitted}        if it is refused
--
-- The value of the key is the times of the admissions that still count, t0 being the oldest. A time has 5 bytes: the
-- microseconds of this server's clock modulo 2^40 (12.7 days, far longer than any window), big-endian.
--
-- Up to 16 times are a row, here three of them:
--
--     byte  0    5    10   15
--           | t0 | t1 | t2 |
--
-- More are a ring, which begins with a header. Here head = 18 and count = 20, in a ring of 24 slots:
--
--     byte  0      4       8    13           83            103           133
--           | head | count | t0 | t6 ... t19 | unused      | t0 ... t5   |
--                               | slots 0-13 | slots 14-17 | slots 18-23 |
--
-- Time number i is in slot (head + i) % slots. A call reads the header and the slots that it needs; an admission writes
-- one slot and the header. The length of a value shows whether it is a row or a ring, and how many slots a ring has.
local TIME_BYTES, HEADER_BYTES, CYCLE = 5, 13, 1099511627776
local ROW_TIMES, ROW_BYTES = 16, '80'
local call, pack, unpack_time, sub = redis.call, struct.pack, struct.unpack, string.sub
local key, limit, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = call('TIME')
local now = (clock[1] * 1000000 + clock[2]) % CYCLE
local packed_now = pack('>I5', now)

-- One byte more than the longest row, which only a ring has. A value of another type counts as empty.
local times = redis.pcall('GETRANGE', key, '0', ROW_BYTES)
if times == '' or type(times) ~= 'string' then
  if ARGV[4] then return {1} end
  call('SET', key, packed_now, 'PX', ARGV[3])
  return {1, limit - 1, window}
end
local is_ring, slots, head, count = #times > ROW_TIMES * TIME_BYTES, 0, 0, #times / TIME_BYTES
local read
if is_ring then
  slots = (call('STRLEN', key) - HEADER_BYTES) / TIME_BYTES
  head, count = struct.unpack('>I4I4', times)
  times = sub(times, 9, HEADER_BYTES)
  -- The bytes of `number` times from time number `index` on, in one or two parts.
  read = function(index, number)
    local slot = (head + index) % slots
    local start, until_end = HEADER_BYTES + slot * TIME_BYTES, math.min(number, slots - slot)
    local bytes = call('GETRANGE', key, start, start + until_end * TIME_BYTES - 1)
    if until_end == number then return bytes end
    return bytes .. call('GETRANGE', key, HEADER_BYTES, HEADER_BYTES + (number - until_end) * TIME_BYTES - 1)
  end
end
-- A corrupt value counts as empty: its length is not that of a window, or its header points outside of the slots.
if (slots + count) % 1 ~= 0 or is_ring and (head >= slots or count > slots or count < 1) then
  times, is_ring, count = '', false, 0
end

-- The age of a time by its number. `times` has those from number `first` on: of a row all, of a ring as many as were
-- needed. Each read of a ring is twice as long as the one before, so that few reads find the oldest that still counts.
local first, read_length = 0, 2
local function age_of(index)
  if is_ring and (index < first or index >= first + #times / TIME_BYTES) then
    read_length = read_length * 2
    times, first = read(index, math.min(read_length, count - index)), index
  end
  return (now - unpack_time('>I5', times, (index - first) * TIME_BYTES + 1)) % CYCLE
end

-- The request is refused if the newest `limit` times are all in the window, whichever limit they were written under.
local oldest, age, all, reply = count - limit, 0, nil, nil
if oldest >= 0 then
  age = age_of(oldest)
  if age < window then
    return {0, 0, window - age}
  elseif age >= CYCLE / 2 then
    -- A time in the future: the clock of this server was set back, or the value is corrupt. Count all times as now:
    -- that never admits too many, and ends after one window.
    all, reply = string.rep(packed_now, limit), {0, 0, window}
  end
end

if not reply then
  if ARGV[4] then return {1} end
  -- Skip the times that have left the window, usually none or one since the last admission. Fewer than `limit` remain.
  oldest = math.max(oldest + 1, 0)
  while oldest < count do
    age = age_of(oldest)
    if age < window or age >= CYCLE / 2 then break end
    oldest = oldest + 1
  end
  local counted = count - oldest
  reply = {1, limit - counted - 1, counted > 0 and age < window and window - age or window}
  if is_ring and counted >= ROW_TIMES and counted < slots then
    local start = (oldest - first) * TIME_BYTES
    local oldest_time = sub(times, start + 1, start + TIME_BYTES)
    call('SETRANGE', key, HEADER_BYTES + (head + count) % slots * TIME_BYTES, packed_now)
    call('SETRANGE', key, '0', pack('>I4I4', (head + oldest) % slots, counted + 1) .. oldest_time)
    call('PEXPIRE', key, ARGV[3])
    return reply
  end
  all = (is_ring and read(oldest, counted) or sub(times, oldest * TIME_BYTES + 1)) .. packed_now
end

-- Write the whole value: a row, or a ring with unused slots for half as many times again, up to the limit.
local number = #all / TIME_BYTES
if number > ROW_TIMES then
  local unused = math.max(math.min(math.floor(number * 1.5), limit) - number, 0)
  all = pack('>I4I4', 0, number) .. sub(all, 1, TIME_BYTES) .. all .. string.rep('\0', unused * TIME_BYTES)
end
call('SET', key, all, 'PX', ARGV[3])
return reply
