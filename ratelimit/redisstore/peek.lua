-- This op reports the result that a take of n units would have.
--
-- Result  0, and the algorithm's report

local size, first_entry = 1 + report_size, 2 + rule_size

local function run(key, n)
  o = o + 1
  out[o] = 0
  report(key, r, 0, n, read(key, r))
end
