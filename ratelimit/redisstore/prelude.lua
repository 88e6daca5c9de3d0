-- prelude: the beginning of every script.
--
-- A script has the algorithms that its rules need, and ends with takes.lua or group.lua. An
-- algorithm is a table of functions on one counter, whose state is up to three values:
--
--   width                 how many integers show adds
--   read(key, r)          returns the state; of a fresh counter if the key doesn't exist
--   room(key, r, ...)     how many units pass now; may be below 0
--   fits(key, r, n, ...)  whether n more units can be counted exactly
--   charge(key, r, n, ahead, ...)  writes n more units, returns the new state. Units that are
--                         charged ahead may be spent so many us later
--   count(key, r, over, ...)       units of an interval
--   refund(key, r, n, at, life, ...)  takes n units back that were charged there, returns
--                         whether it could, and the new state
--   show(key, r, one, n, ...)  adds what Go needs to explain the counter. Some algorithms
--                         search for when n more units pass. one is 1 if units were charged
--                         just now: then they search for when the next unit passes, too
--
-- "..." is the state. Functions other than charge and refund only read. What is not this
-- counter is left as it is: reading it raises foreign, before the first write. charge raises
-- overflow if it can't count the units.
--
-- Times are microseconds, and all numbers are integers up to 2^53, which Go checked for those
-- in ARGV.

local call, pcall_redis, number = redis.call, redis.pcall, tonumber
local floor, fmod, match = math.floor, math.fmod, string.match
local most = 9007199254740992
local foreign, overflow = 'foreign', 'overflow' -- Redis 7.0 crashes of errors that are tables
local algorithms = {}

local now = number(ARGV[1]) -- 0 unless a test has a clock of its own
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end

local out, o = {now}, 1

local function add(v)
  o = o + 1
  out[o] = v
end

-- rule reads the seven numbers of a rule.
local function rule(at)
  return {
    limit = number(ARGV[at]), per = number(ARGV[at + 1]), burst = number(ARGV[at + 2]),
    interval = number(ARGV[at + 3]), size = number(ARGV[at + 4]), window = number(ARGV[at + 5]),
    ttl = number(ARGV[at + 6]),
  }
end

-- refusal returns what a script returns to fail as Redis did: raised again, an error loses its code.
local function refusal(err) return {err = err} end

-- digits writes an integer as Redis takes it.
local function digits(n) return string.format('%.0f', n) end

-- quotient divides integers that are not negative. It is exact, which floor(a / b) is not.
local function quotient(a, b) return (a - fmod(a, b)) / b end

-- load reads a key that holds two integers; it returns nothing if there is no such key.
local function load(key)
  local s = pcall_redis('GET', key)
  if not s then return end
  if type(s) ~= 'string' or #s > 33 then error(foreign, 0) end
  local a, b = match(s, '^(%d+) (%d+)$')
  a, b = number(a), number(b)
  if not a or a > 2 * most or b > 2 * most then error(foreign, 0) end -- times may be a century later
  return a, b
end

-- save writes two integers to a key that lives for so long.
local function save(key, a, b, life)
  call('SET', key, digits(a) .. ' ' .. digits(b), 'PX', digits(math.max(1, math.ceil(life / 1000))))
end
