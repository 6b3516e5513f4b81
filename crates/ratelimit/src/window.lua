-- Decides whether requests are within the sliding windows of their keys, and counts those that are.
--
-- KEYS     for each request the window of its address; after it, if it has an IPv6 address, that of its network
-- ARGV[1]  the length of all windows in microseconds
-- ARGV[2]  the time to live of the keys in milliseconds, which is more than the window
-- ARGV[3…] for each key its limit, the maximum number of admissions in any window; negative for a network; with
--          `r` after it if the budget is reported
-- Returns  for each request 0 if it is admitted, or its budget if that is reported: the number of admissions that
--          are left, and the microseconds until there is one more. If it is refused, the microseconds until a
--          request can be admitted: negative if it is the network that refuses it
--
-- The value of a key is a list of the times of admissions, oldest first, in microseconds since 1970. It has all
-- times that are in the window, at most as many as the limit, and possibly older ones.
local call, pcall = redis.call, redis.pcall
local window, ttl = tonumber(ARGV[1]), ARGV[2]
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local now_text = string.format('%.0f', now)

-- What is not a time is as old as can be.
local function age_at(key, index)
  return now - (tonumber(call('LINDEX', key, index)) or 0)
end

-- Counts a request if it is within the limit of the key. Returns 0, or the microseconds until it would be.
-- If the budget is reported, all times of the key are in the window after it.
local function count(key, limit, reports)
  -- Most requests are within the limit, so this comes first, and is undone for the others.
  local length = pcall('RPUSH', key, now_text)
  if type(length) == 'table' then
    -- A value of another type is replaced. If Redis is full, the second attempt ends the script.
    if string.find(length.err, 'WRONGTYPE') then call('DEL', key) end
    length = call('RPUSH', key, now_text)
  end
  if length > limit then
    -- The request is refused if the `limit` times before it are all in the window, whichever limit they were
    -- written under.
    local age = age_at(key, -limit - 1)
    if age < 0 then
      -- The clock of this server was set back. Count all times as now: that never admits too many, and ends
      -- after one window.
      call('DEL', key)
      for _ = 1, limit do call('RPUSH', key, now_text) end
      call('PEXPIRE', key, ttl)
      return window
    elseif age < window then
      call('RPOP', key)
      return window - age
    end
    call('LTRIM', key, -limit, -1)
  elseif length % 16 == 0 then
    -- Else an address that never reaches its limit would have as many times as one that does.
    while age_at(key, 15) >= window do call('LTRIM', key, 16, -1) end
  end
  if reports then
    while age_at(key, 0) >= window do call('LPOP', key) end
  end
  call('PEXPIRE', key, ttl)
  return 0
end

local function budget(key, limit)
  return {limit - call('LLEN', key), window - age_at(key, 0)}
end

local replies = {}
for index, key in ipairs(KEYS) do
  local limit, reports = tonumber(ARGV[index + 2]), false
  if not limit then limit, reports = tonumber(string.sub(ARGV[index + 2], 1, -2)), true end
  if limit > 0 then
    local wait = count(key, limit, reports)
    if reports and wait == 0 then wait = budget(key, limit) end
    replies[#replies + 1] = wait
  else
    -- A request counts for its address and its network or for neither. If both refuse it, the longer wait
    -- counts.
    local own, network_wait = replies[#replies], count(key, -limit, reports)
    local address_wait = type(own) == 'table' and 0 or own
    if address_wait == 0 and network_wait > 0 then call('RPOP', KEYS[index - 1]) end
    if network_wait == 0 and address_wait > 0 then call('RPOP', key) end
    if network_wait > address_wait then
      replies[#replies] = -network_wait
    elseif reports and address_wait == 0 then
      local of_network = budget(key, -limit)
      if of_network[1] < own[1] then replies[#replies] = of_network end
    end
  end
end
return replies
