-- This op counts the units charged in an interval.
--
-- Interval  follows the rule in ARGV
-- Result    the count

local size, first_entry = 1, 3 + rule_size
local interval = number(ARGV[first_entry - 1])

local function run(key)
  o = o + 1
  out[o] = count(key, r, interval, read(key, r))
end
