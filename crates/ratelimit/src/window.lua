-- Decides whether requests are within the sliding windows of their keys, and counts those that are.
--
-- KEYS     for each request the window of its (group, address), and then, if it is limited by its network as
-- well, that of
--          its (group, network)
-- ARGV[1]  the length of all windows in microseconds
-- ARGV[2]  the time to live of the keys in milliseconds, which is more than the window
-- ARGV[3]  the limit of the first request: the maximum number of admissions of its address in any window
-- ARGV[4]  the limit of its network; 0 if it has only one key
-- ARGV[5…] the limits of the next requests, likewise
-- Returns  10 bytes for each request, numbers being big-endian:
--            1  1 if it is admitted, 0 if it is refused by its address, 2 if it is refused by its network
--            4  how many further requests would be admitted now
--            5  microseconds: if admitted, until the oldest admission of the address leaves the window; if refused, until a
--               request can be admitted
--
-- The value of a key is the times of the admissions that still count, t0 being the oldest. A time has 5 bytes:
-- the microseconds of this server's clock modulo 2^40 (12.7 days, far longer than any window), big-endian.
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
-- Time number i is in slot (head + i) % slots. An admission writes one slot and the header. The length of a
-- value shows whether it is a row or a ring, and how many slots a ring has.
local TIME_BYTES, HEADER_BYTES, CYCLE = 5, 13, 1099511627776
local ROW_TIMES, ROW_BYTES = 16, '80'
-- Up to this limit, reading a value as a whole (5 kB) takes less time than a second command.
local MAX_LIMIT_READ_AS_A_WHOLE = 1000
local call, pcall, pack, unpack_numbers, sub = redis.call, redis.pcall, struct.pack, struct.unpack, string.sub
local window, ttl = tonumber(ARGV[1]), ARGV[2]
local clock = call('TIME')
local now = (clock[1] * 1000000 + clock[2]) % CYCLE
local packed_now = pack('>I5', now)

-- Decides by one window. A dry run counts nothing, and returns nothing but whether the request would be
-- admitted, or the refusal. Returns
--   1, remaining, microseconds until the oldest admission leaves the window  if the request is admitted
--   0, 0,         microseconds until the next request can be admitted        if it is refused
local function decide(key, limit, is_dry_run)
  -- Most addresses have no window: then this is the only command. Else it returns the value, which at a limit
  -- of 240 has at most 1.2 kB. It is an error before Redis 7, and if the value has another type, which counts
  -- as empty.
  local value = nil
  if not is_dry_run and limit <= MAX_LIMIT_READ_AS_A_WHOLE then
    value = pcall('SET', key, packed_now, 'NX', 'GET', 'PX', ttl)
    if not value then return 1, limit - 1, window end
    if type(value) ~= 'string' then value = nil end
  end
  -- One byte more than the longest row, which only a ring has.
  local times = value or pcall('GETRANGE', key, '0', ROW_BYTES)
  if times == '' or type(times) ~= 'string' then
    if is_dry_run then return 1 end
    call('SET', key, packed_now, 'PX', ttl)
    return 1, limit - 1, window
  end
  local function range(first, last)
    if value then return sub(value, first + 1, last + 1) end
    return call('GETRANGE', key, first, last)
  end

  local is_ring, slots, head, count = #times > ROW_TIMES * TIME_BYTES, 0, 0, #times / TIME_BYTES
  local read
  if is_ring then
    slots = ((value and #value or call('STRLEN', key)) - HEADER_BYTES) / TIME_BYTES
    head, count = unpack_numbers('>I4I4', times)
    times = sub(times, 9, HEADER_BYTES)
    -- The bytes of `number` times from time number `index` on, in one or two parts.
    read = function(index, number)
      local slot = (head + index) % slots
      local start, until_end = HEADER_BYTES + slot * TIME_BYTES, math.min(number, slots - slot)
      local bytes = range(start, start + until_end * TIME_BYTES - 1)
      if until_end == number then return bytes end
      return bytes .. range(HEADER_BYTES, HEADER_BYTES + (number - until_end) * TIME_BYTES - 1)
    end
  end
  -- A corrupt value counts as empty: its length is not that of a window, or its header points outside of the
  -- slots.
  if (slots + count) % 1 ~= 0 or is_ring and (head >= slots or count > slots or count < 1) then
    times, is_ring, count = '', false, 0
  end

  -- The age of a time by its number. `times` holds the times from number `first` on: all of a row, and of a
  -- ring those read so far. Each read of a ring is twice as long as the one before, so that few reads find the
  -- oldest that counts.
  local first, read_length = 0, 2
  local function age_of(index)
    if is_ring and (index < first or index >= first + #times / TIME_BYTES) then
      read_length = read_length * 2
      times, first = read(index, math.min(read_length, count - index)), index
    end
    return (now - unpack_numbers('>I5', times, (index - first) * TIME_BYTES + 1)) % CYCLE
  end

  -- The request is refused if the newest `limit` times are all in the window, whichever limit they were written
  -- under.
  local oldest, age, all, remaining, wait = count - limit, 0, nil, nil, nil
  if oldest >= 0 then
    age = age_of(oldest)
    if age < window then
      return 0, 0, window - age
    elseif age >= CYCLE / 2 then
      -- A time in the future: the clock of this server was set back, or the value is corrupt. Count all times
      -- as now: that never admits too many, and ends after one window.
      all = string.rep(packed_now, limit)
    end
  end

  if not all then
    if is_dry_run then return 1 end
    -- Skip the times that have left the window, usually none or one since the last admission. Fewer than
    -- `limit` remain.
    oldest = math.max(oldest + 1, 0)
    while oldest < count do
      age = age_of(oldest)
      if age < window or age >= CYCLE / 2 then break end
      oldest = oldest + 1
    end
    local counted = count - oldest
    remaining, wait = limit - counted - 1, counted > 0 and age < window and window - age or window
    if is_ring and counted >= ROW_TIMES and counted < slots then
      local start = (oldest - first) * TIME_BYTES
      local oldest_time = sub(times, start + 1, start + TIME_BYTES)
      call('SETRANGE', key, HEADER_BYTES + (head + count) % slots * TIME_BYTES, packed_now)
      call('SETRANGE', key, '0', pack('>I4I4', (head + oldest) % slots, counted + 1) .. oldest_time)
      call('PEXPIRE', key, ttl)
      return 1, remaining, wait
    end
    all = (is_ring and read(oldest, counted) or sub(times, oldest * TIME_BYTES + 1)) .. packed_now
  end

  -- Write the whole value: a row, or a ring with unused slots for half as many times again, up to the limit.
  local number = #all / TIME_BYTES
  if number > ROW_TIMES then
    local unused = math.max(math.min(math.floor(number * 1.5), limit) - number, 0)
    all = pack('>I4I4', 0, number) .. sub(all, 1, TIME_BYTES) .. all .. string.rep('\0', unused * TIME_BYTES)
  end
  call('SET', key, all, 'PX', ttl)
  if remaining then return 1, remaining, wait end
  return 0, 0, window
end

-- Decides by the windows of the address and of the network: both must admit the request. `remaining` is the
-- smaller one of both. If both refuse, the longer wait counts.
--
-- A request counts in both windows or in neither, so the address makes a dry run before the network counts.
-- What passes the dry run is admitted afterwards: in between, a window can only lose admissions.
local function decide_both(address, network, limit, network_limit)
  local is_admitted, _, address_wait = decide(address, limit, true)
  if is_admitted == 0 then
    local by_network, _, network_wait = decide(network, network_limit, true)
    if by_network == 0 and network_wait > address_wait then return 2, 0, network_wait end
    return 0, 0, address_wait
  end
  local by_network, network_remaining, network_wait = decide(network, network_limit)
  if by_network == 0 then return 2, 0, network_wait end
  local _, remaining, wait = decide(address, limit)
  return 1, math.min(remaining, network_remaining), wait
end

local replies, key = {}, 1
for argument = 3, #ARGV, 2 do
  local limit, network_limit = tonumber(ARGV[argument]), tonumber(ARGV[argument + 1])
  if network_limit == 0 then
    replies[#replies + 1] = pack('>BI4I5', decide(KEYS[key], limit))
    key = key + 1
  else
    replies[#replies + 1] = pack('>BI4I5', decide_both(KEYS[key], KEYS[key + 1], limit, network_limit))
    key = key + 2
  end
end
return table.concat(replies)
