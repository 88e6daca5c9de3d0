-- The first part of every script.
--
-- A script consists of the prelude, an algorithm, an op (take.lua, peek.lua, add.lua or count.lua), and
-- each.lua. The script of a group consists of the prelude, its algorithms as tables, and group.lua.
--
-- An algorithm is two numbers and some functions on one counter. The counter's state is up to three
-- values, "...":
--
--   rule_size         the number of integers in a rule
--   report_size       the number of integers in a report
--   rule(at)          reads a rule that begins at ARGV[at]
--   read(key, r)      returns the state
--   room(key, r, ...) returns the number of units that pass now, below 1 if none pass
--   charge(key, r, n, prepaid, ...)
--                     charges n units and returns the new state. The units may be spent until
--                     prepaid µs from now
--   report(key, r, one, n, ...)
--                     adds the integers from which Go computes the result. Some algorithms search
--                     for the time when n more units pass. one is 1 if units have just been charged:
--                     then they also search for the time when the next unit passes
--   fits(key, r, n, ...)          reports whether n more units can be counted exactly
--   count(key, r, interval, ...)  returns the units of an interval
--   refund(key, r, n, charged_at, generation, ...)
--                     gives back n units of a charge; reports whether it could, and returns the new
--                     state
--
-- The scripts of takes and peeks omit the end of an algorithm, which they do not need, because the
-- cost of a short script is mostly the creation of its functions.
--
-- A foreign value stays unchanged: reading it raises foreign, before the first write. charge raises
-- overflow if the counter cannot hold the units.
--
-- Times are in microseconds. All numbers are integers up to 2^53; Go has checked those in ARGV.

local call, try, number = redis.call, redis.pcall, tonumber
local floor, fmod, max, ceil = math.floor, math.fmod, math.max, math.ceil
local match, format = string.match, string.format
local max_count = 2^53
local foreign, overflow = 'foreign', 'overflow' -- strings, because Redis 7.0 crashes when an error is a table

local now = number(ARGV[1]) -- 0 unless a test sends its own clock
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end

local out, o = {now}, 1

-- digits formats an integer for Redis.
local function digits(n) return format('%.0f', n) end

-- fail raises the error of a read: foreign for a key of another type, else Redis' own error.
local function fail(reply) error(match(reply.err, '^WRONGTYPE') and foreign or reply.err, 0) end

-- bounded returns a number of a counter. It raises foreign unless the number is an integer up to top,
-- by default 2^54, since times may be later than now by a century.
local function bounded(n, top)
  if not n or n % 1 ~= 0 or n < 0 or n > (top or 2 * max_count) then error(foreign, 0) end
  return n
end

-- expire sets the TTL of a key, in µs.
local function expire(key, ttl) call('PEXPIRE', key, digits(max(1, ceil(ttl / 1000)))) end
