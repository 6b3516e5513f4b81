-- One decision of the exact sliding window for one key.
--
-- KEYS[1]  the window of one (group, address)
-- ARGV[1]  the limit: the most admissions in any window
-- ARGV[2]  the window in microseconds
-- ARGV[3]  how long a value is kept after its newest admission, in milliseconds: more than the window
-- ARGV[4]  set where the window is only asked and nothing is to be counted: then {1} stands for "would be admitted"
-- Answers  {1, remaining, microseconds until the oldest admission leaves}    admitted
--          {0, 0,         microseconds until the next admission is possible} refused
--
-- The value is the admission times that still count, 5 bytes each: microseconds of the clock of this server, modulo
-- 2^40 (12.7 days, so that no two times that live together are ambiguous). Up to 16 of them stand in a row, oldest
-- first, and nothing else. More are a ring: a header with the slot of the oldest, the number of times and the oldest
-- time, then the slots. The length of a value says which it is, and how many slots there are.
local SLOT, HEADER, CYCLE = 5, 13, 1099511627776
local ROW, ROW_BYTES = 16, '80'
local call, pack, unpack_time, sub = redis.call, struct.pack, struct.unpack, string.sub
local key, limit, window = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local clock = call('TIME')
local now = (clock[1] * 1000000 + clock[2]) % CYCLE
local admitted = pack('>I5', now)

-- Asks for one byte more than the longest row, which only a ring has. A value of another type counts as none.
local times = redis.pcall('GETRANGE', key, '0', ROW_BYTES)
if times == '' or type(times) ~= 'string' then
  if ARGV[4] then return {1} end
  call('SET', key, admitted, 'PX', ARGV[3])
  return {1, limit - 1, window}
end
local ring, slots, head, count = #times > ROW * SLOT, 0, 0, #times / SLOT
local read
if ring then
  slots = (call('STRLEN', key) - HEADER) / SLOT
  head, count = struct.unpack('>I4I4', times)
  times = sub(times, 9, HEADER)
  -- The bytes of this many slots, from a place on. Places count from the oldest admission, which is 0.
  read = function(place, number)
    local slot = (head + place) % slots
    local start, ahead = HEADER + slot * SLOT, math.min(number, slots - slot)
    local bytes = call('GETRANGE', key, start, start + ahead * SLOT - 1)
    if ahead == number then return bytes end
    return bytes .. call('GETRANGE', key, HEADER, HEADER + (number - ahead) * SLOT - 1)
  end
end
-- A length that no window has, a place or a number that the slots do not have: damaged, and counts as none.
if (slots + count) % 1 ~= 0 or ring and (head >= slots or count > slots or count < 1) then
  times, ring, count = '', false, 0
end

-- How long ago the admission at a place was. `times` holds those from the place `first` on: of a row all, of a ring
-- as many as were needed, twice as many at each reading, so that few readings find the first of many that counts.
local first, step = 0, 2
local function age_at(place)
  if ring and (place < first or place >= first + #times / SLOT) then
    step = step * 2
    times, first = read(place, math.min(step, count - place)), place
  end
  return (now - unpack_time('>I5', times, (place - first) * SLOT + 1)) % CYCLE
end

-- The newest `limit` admissions decide, whatever limit the replica that wrote them has. A refusal writes nothing.
local live, age, all, answer = count - limit, 0, nil, nil
if live >= 0 then
  age = age_at(live)
  if age < window then
    return {0, 0, window - age}
  elseif age >= CYCLE / 2 then
    -- In the future: the clock of this server was set back, or the value is damaged. What cannot be dated happened
    -- just now: never too many, and over after one window.
    all, answer = string.rep(admitted, limit), {0, 0, window}
  end
end

if not answer then
  if ARGV[4] then return {1} end
  -- Keep what still counts: at most `limit - 1`, and as a rule nothing or one has left since the last admission.
  live = math.max(live + 1, 0)
  while live < count do
    age = age_at(live)
    if age < window or age >= CYCLE / 2 then break end
    live = live + 1
  end
  local kept = count - live
  answer = {1, limit - kept - 1, kept > 0 and age < window and window - age or window}
  if ring and kept >= ROW and kept < slots then
    local oldest = (live - first) * SLOT
    call('SETRANGE', key, HEADER + (head + count) % slots * SLOT, admitted)
    call('SETRANGE', key, '0', pack('>I4I4', (head + live) % slots, kept + 1) .. sub(times, oldest + 1, oldest + SLOT))
    call('PEXPIRE', key, ARGV[3])
    return answer
  end
  all = (ring and read(live, kept) or sub(times, live * SLOT + 1)) .. admitted
end

-- The whole value: a row, or a ring with room for a half more, but not for more than the limit.
local number = #all / SLOT
if number > ROW then
  local free = math.max(math.min(math.floor(number * 1.5), limit) - number, 0)
  all = pack('>I4I4', 0, number) .. sub(all, 1, SLOT) .. all .. string.rep('\0', free * SLOT)
end
call('SET', key, all, 'PX', ARGV[3])
return answer
