-- One decision for an address and the network that it belongs to: both windows have to admit.
--
-- KEYS[1]  the window of one (group, address)
-- KEYS[2]  the window of the same group for the network
-- ARGV[1]  the limit of KEYS[1]
-- ARGV[2]  the window in microseconds, of both
-- ARGV[3]  how long a value is kept after its newest admission, in milliseconds
-- ARGV[4]  the limit of KEYS[2]
-- Answers  {1, remaining, microseconds until the oldest admission of the address leaves, 0}  admitted
--          {0, 0,         microseconds until the next admission is possible, 0}             refused by the address
--          {0, 0,         microseconds until the next admission is possible, 1}             refused by the network
--
-- `remaining` is the smaller one of both windows, and a refusal by both has the longer wait. `decide` is the script
-- `window.lua`. A request is counted in both windows or in none: the address is asked before the network counts, and
-- what was admitted by a window is admitted again when the script comes back to it, since time only empties a window.
local address, network = {KEYS[1]}, {KEYS[2]}
local own = decide(address, {ARGV[1], ARGV[2], ARGV[3], 'ask'})
if own[1] == 0 then
  local all = decide(network, {ARGV[4], ARGV[2], ARGV[3], 'ask'})
  if all[1] == 0 and all[3] > own[3] then return {0, 0, all[3], 1} end
  return {0, 0, own[3], 0}
end
local all = decide(network, {ARGV[4], ARGV[2], ARGV[3]})
if all[1] == 0 then return {0, 0, all[3], 1} end
own = decide(address, {ARGV[1], ARGV[2], ARGV[3]})
return {1, math.min(own[2], all[2]), own[3], 0}
