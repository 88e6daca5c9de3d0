-- calls: the last part of the script, which runs them one after another.

local run, series

local function known(name)
  if not rules[name] then rules[name] = rule(heads[name]) end
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

-- many does equal takes.
local function many(r, n, times)
  o = o + 9
  for i = o - 8, o do out[i] = 0 end
  local ok, passed, remaining, retry, wait, reset, where, life, free, hold =
    protected(series, {rule = r, kind = 'take', key = 1, blocks = 2, n = n}, times)
  if not ok and passed ~= foreign then error(passed, 0) end
  if not ok or not passed then
    out[o - 8] = ok and -2 or -3
    return
  end
  out[o - 8], out[o - 7], out[o - 6], out[o - 5], out[o - 4] = passed, remaining, retry, wait, reset
  out[o - 3], out[o - 2], out[o - 1], out[o] = where, life, free, hold
end

local last = #ARGV
while at <= last do
  local size = ARGV[at]
  if size == '0' then
    local r, kind, n, over = known(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
    local done, a, b, c
    if quick[r.algorithm] then
      done, a, b, c = only(o, 1, protected(quick[r.algorithm], r, KEYS[key + 1], kind, n, over))
    end
    if not done then
      if not run then run, series = driver() end
      local op = {rule = r, kind = kind, key = 1, n = number(n), over = number(over), read = a and {a, b, c}}
      only(o, 1, protected(run, {op}))
    end
    at, key = at + 5, key + 1
  elseif size == 'many' then
    if not run then run, series = driver() end
    many(known(ARGV[at + 1]), number(ARGV[at + 2]), number(ARGV[at + 3]))
    at, key = at + 4, key + 2
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
    if not run then run, series = driver() end
    only(o, #ops, protected(run, ops))
    key = key + keys
  end
end
return out
