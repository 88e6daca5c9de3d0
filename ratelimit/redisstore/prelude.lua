-- This file is the first part of every script.
--
-- A script that runs an op on many keys consists of this file, an algorithm, an op (take.lua, peek.lua,
-- add.lua or count.lua), and each.lua. The script of a group consists of this file, its algorithms as
-- tables, and group.lua.
--
-- An algorithm defines two numbers and some functions on a counter. The counter's state is up to three
-- values, written as "...":
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
--                     adds the integers from which Go computes the result to out. Some algorithms
--                     search for the time at which n more units pass. If one is 1, because units
--                     have just been charged, they also search for the time at which the next unit
--                     passes
--   fits(key, r, n, ...)          reports whether n more units can be counted exactly
--   count(key, r, interval, ...)  returns the units of an interval
--   refund(key, r, n, charged_at, generation, ...)
--                     gives back n units of a charge; returns whether this was possible, and the
--                     new state
--
-- The scripts of takes and peeks omit the last functions of an algorithm, which they do not need. A short
-- script spends most of its time on the creation of its functions.
--
-- A key with a foreign value is not changed: read raises foreign before the first write. charge raises
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

-- digits returns an integer as a string for Redis.
local function digits(n) return format('%.0f', n) end

-- fail raises foreign if the key has another type, and otherwise the error of Redis.
local function fail(reply) error(match(reply.err, '^WRONGTYPE') and foreign or reply.err, 0) end

-- bounded returns n if it is an integer from 0 to top, and otherwise raises foreign. By default, top is
-- 2^54, because the time of an event may be a century from now.
local function bounded(n, top)
  if not n or n % 1 ~= 0 or n < 0 or n > (top or 2 * max_count) then error(foreign, 0) end
  return n
end

-- expire sets the TTL of a key. ttl is in µs.
local function expire(key, ttl) call('PEXPIRE', key, digits(max(1, ceil(ttl / 1000)))) end
