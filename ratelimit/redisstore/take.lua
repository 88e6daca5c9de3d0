-- This op charges n units for each of several equal takes until the limit is reached.
--
-- Result  the number of takes that have passed, which are the first ones, and the algorithm's report

local size, first_entry = 1 + report_size, 2 + rule_size

local function run(key, n, times)
  local s, t, u = read(key, r)
  local units, passed = room(key, r, s, t, u), 0
  if units >= n then
    passed = times
    if times * n > units then passed = (units - fmod(units, n)) / n end
    s, t, u = charge(key, r, passed * n, 0, s, t, u)
  end
  o = o + 1
  out[o] = passed
  report(key, r, passed > 0 and 1 or 0, passed < times and n or 0, s, t, u)
end
