-- A string of two integers, the state of a GCRA and of a block.

-- pair reads a string of two integers, the second up to top. It returns nothing if there is no key.
local function pair(key, top)
  local s = try('GET', key)
  if not s then return end
  if type(s) == 'table' then fail(s) end
  if #s > 36 then error(foreign, 0) end
  local a, b = match(s, '^(%d+) (%d+)$')
  return bounded(number(a)), bounded(number(b), top)
end
