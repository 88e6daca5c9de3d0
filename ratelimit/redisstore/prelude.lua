-- prelude: the beginning of every script.
--
-- A script has the algorithms that its rules need, and ends with takes.lua or group.lua. An
-- algorithm is a table of functions on one counter, whose state is up to three values, "...":
--
--   width             how many integers show adds
--   size              how many numbers its rules are
--   rule(at)          reads a rule, the first number of which is ARGV[at]
--   read(key, r)      returns how many units pass now, below 1 if none do, and the state; a
--                     fresh one if the key doesn't exist
--   charge(key, r, n, ahead, ...)  writes n more units, returns the new state. Units that are
--                     charged ahead may be spent so many us later
--   show(key, r, one, n, ...)  adds what Go needs to explain the counter. Some algorithms
--                     search for when n more units pass. one is 1 if units were charged
--                     just now: then they search for when the next unit passes, too
--
-- What follows the line "-- Only groups need what follows." in its file is not part of takes:
-- what a short script costs is mostly its functions.
--
--   fits(key, r, n, ...)      whether n more units can be counted exactly
--   count(key, r, over, ...)  units of an interval
--   refund(key, r, n, at, life, ...)  takes n units back that were charged there, returns
--                     whether it could, and the new state
--
-- What is not this counter is left as it is: reading it raises foreign, before the first write.
-- charge raises overflow if it can't count the units.
--
-- Times are microseconds, and all numbers are integers up to 2^53, which Go checked for those
-- in ARGV.

local call, try, number = redis.call, redis.pcall, tonumber
local floor, fmod, max, ceil = math.floor, math.fmod, math.max, math.ceil
local match, format = string.match, string.format
local most = 9007199254740992
local foreign, overflow = 'foreign', 'overflow' -- Redis 7.0 crashes of errors that are tables

local now = number(ARGV[1]) -- 0 unless a test has a clock of its own
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end

local out, o, algorithms = {now}, 1, {}

-- digits writes an integer as Redis takes it.
local function digits(n) return format('%.0f', n) end

-- fail raises the error that a read got: the key is something else's, or Redis refuses to read.
local function fail(reply) error(match(reply.err, '^WRONGTYPE') and foreign or reply.err, 0) end

-- bounded returns a number that a counter may hold, up to top; times may be a century later than now.
local function bounded(n, top)
  if not n or n % 1 ~= 0 or n < 0 or n > (top or 2 * most) then error(foreign, 0) end
  return n
end

-- pair reads a string of two integers, the second up to top; it returns nothing if there is no such key.
local function pair(key, top)
  local s = try('GET', key)
  if not s then return end
  if type(s) == 'table' then fail(s) end
  local a, b = match(s, '^(%d+) (%d+)$')
  if #s > 36 then error(foreign, 0) end
  return bounded(number(a)), bounded(number(b), top)
end

-- refusal returns what a script returns to fail as Redis did: raised again, an error loses its code.
local function refusal(err) return {err = err} end

-- expire lets a key live for so many us.
local function expire(key, life) call('PEXPIRE', key, digits(max(1, ceil(life / 1000)))) end
