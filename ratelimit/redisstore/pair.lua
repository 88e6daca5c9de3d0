-- The state of a GCRA or of a block is a string of two integers.

-- pair returns the two integers, or nothing if the key does not exist. The second integer is at most top.
local function pair(key, top)
  local s = try('GET', key)
  if not s then return end
  if type(s) == 'table' then fail(s) end
  if #s > 36 then error(foreign, 0) end
  local a, b = match(s, '^(%d+) (%d+)$')
  return bounded(number(a)), bounded(number(b), top)
end
