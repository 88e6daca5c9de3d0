-- This op charges n units for each of several equal adds, even beyond the limit, and counts the units
-- charged in an interval. If the counter cannot hold all of them, only the first adds are charged.
--
-- Interval  follows the rule in ARGV
-- Result    the number of adds that were charged, the count, and the algorithm's report

local size, first_entry = 2 + report_size, 3 + rule_size
local interval = number(ARGV[first_entry - 1])

local function run(key, n, times)
  local s, t, u = read(key, r)
  if n > 0 then
    while times > 0 and not fits(key, r, times * n, s, t, u) do times = times - 1 end
    if times == 0 then error(overflow, 0) end
    s, t, u = charge(key, r, times * n, 0, s, t, u)
  end
  out[o + 1], out[o + 2] = times, count(key, r, interval, s, t, u)
  o = o + 2
  report(key, r, n > 0 and 1 or 0, n > 0 and 0 or 1, s, t, u)
end
