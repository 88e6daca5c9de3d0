-- Reads and keeps indexes of users' sessions. An index is a sorted set:
--   16 bytes  the locator of a session that was bound to the user, or is about to be;
--             score: when that began, in µs since 1970
--   longest   score: the longest absolute limit, in µs, under which one was bound
--
-- An entry that is there says little, as the session has the last word. One that is not
-- there says that no session at this locator is the user's: it comes before the session
-- is bound, and it goes only when the session cannot be alive or bound any longer.
--
-- Calls    'add', locator, absolute limit in µs
--          'all', '', 0
--          'drop', locators of 16 bytes each one after another, µs that an entry must be old
-- Result   of each: of 'all' {locator, …, longest}; 1 of the others
-- Clock    the server's of this key; the one of a session may differ by up to margin
-- Atomic   because between the look at a score and the removal the session could be
--          bound again

local call, number = redis.call, tonumber
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local margin = 60 * 1000000
local longest = 'longest'
local out = {}

local function digits(n) return string.format('%.0f', n) end

local function add(key, locator, absolute)
  absolute = math.max(absolute, number(call('ZSCORE', key, longest)) or 0)
  call('ZREMRANGEBYSCORE', key, '-inf', digits(now - absolute - margin))
  call('ZADD', key, digits(absolute), longest, digits(now), locator)
  call('PEXPIREAT', key, digits(math.ceil((now + absolute + margin) / 1000)))
  return 1
end

local function drop(key, locators, age)
  for i = 1, #locators, 16 do
    local locator = string.sub(locators, i, i + 15)
    local began = number(call('ZSCORE', key, locator))
    if began and now - began >= age then call('ZREM', key, locator) end
  end
  if call('ZCARD', key) <= 1 then call('UNLINK', key) end
  return 1
end

for i = 1, #KEYS do
  local op, locators, n = ARGV[at], ARGV[at + 1], number(ARGV[at + 2])
  if op == 'add' then
    out[i] = add(KEYS[i], locators, n)
  elseif op == 'drop' then
    out[i] = drop(KEYS[i], locators, n)
  else
    out[i] = call('ZRANGE', KEYS[i], 0, -1)
  end
  at = at + 3
end
return out
