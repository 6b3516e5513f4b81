-- Decides on a request by two windows, that of the address and that of its network: both must admit it.
--
-- KEYS[1]  the window of one (group, address)
-- KEYS[2]  the window of the same group for the network
-- ARGV[1]  the limit of the address
-- ARGV[2]  the length of both windows in microseconds
-- ARGV[3]  the time to live of both keys in milliseconds
-- ARGV[4]  the limit of the network
-- Returns  {1, remaining, microseconds until the oldest admission of the address leaves the window, 0}  if admitted
--          {0, 0,         microseconds until the next request can be admitted, 0}  if refused by the address
--          {0, 0,         microseconds until the next request can be admitted, 1}  if refused by the network
--
-- `remaining` is the smaller one of both windows. If both refuse, the longer wait counts. `decide` is `window.lua`.
--
-- A request counts in both windows or in neither, so the address makes a dry run before the network counts. What passes
-- the dry run is admitted afterwards: in between, a window can only lose admissions.
local address, network = {KEYS[1]}, {KEYS[2]}
local by_address = decide(address, {ARGV[1], ARGV[2], ARGV[3], 'dry run'})
if by_address[1] == 0 then
  local by_network = decide(network, {ARGV[4], ARGV[2], ARGV[3], 'dry run'})
  if by_network[1] == 0 and by_network[3] > by_address[3] then return {0, 0, by_network[3], 1} end
  return {0, 0, by_address[3], 0}
end
local by_network = decide(network, {ARGV[4], ARGV[2], ARGV[3]})
if by_network[1] == 0 then return {0, 0, by_network[3], 1} end
by_address = decide(address, {ARGV[1], ARGV[2], ARGV[3]})
return {1, math.min(by_address[2], by_network[2]), by_address[3], 0}
