-- calls: the last part of the script, which runs them one after another.

local run

local function known(name)
  if not rules[name] then rules[name] = rule(name) end
  return rules[name]
end

-- only passes what a call's functions return on, or the call fails with what they raise
-- if that is its own matter. from is where its answers begin.
local function only(from, ops, ok, done, ...)
  if ok then return done, ... end
  if done ~= foreign then error(done, 0) end
  o = from
  for _ = 1, ops do answer(-3, 0, 0, 0, 0, 0, 0) end
  return true
end

local last = #ARGV
while at <= last do
  local size = ARGV[at]
  if size == '0' then
    local r, kind, n, over = known(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
    local done, a, b, c = only(o, 1, protected(quick[r.algorithm], r, KEYS[key + 1], kind, n, over))
    if not done then
      run = run or driver()
      local op = {rule = r, kind = kind, key = 1, n = number(n), over = number(over), read = a and {a, b, c}}
      only(o, 1, protected(run, {op}))
    end
    at, key = at + 5, key + 1
  else
    local ops, keys = {}, number(ARGV[at + 1])
    at = at + 2
    for i = 1, number(size) do
      ops[i] = {
        rule = known(ARGV[at]), kind = ARGV[at + 1], key = number(ARGV[at + 2]), blocks = number(ARGV[at + 3]),
        n = number(ARGV[at + 4]), over = number(ARGV[at + 5]), life = number(ARGV[at + 6]),
      }
      at = at + 7
    end
    run = run or driver()
    only(o, #ops, protected(run, ops))
    key = key + keys
  end
end
return out
