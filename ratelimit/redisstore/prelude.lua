-- prelude: what the parts of the script share.
--
-- Heads   are rules: algorithm, now in us or 0 for the server's clock, TTL (ms), limit,
--         per (us), three numbers that the algorithm explains, and, if the rule has a
--         block, after how many denials, and for how long (us)
-- Calls   are lists of takes (see lists.lua), or come in three forms. Of one op on a counter
--         of one key:
--           0, rule, kind, n, over
--         Of a group of ops on one subject, whose counters and blocks are the keys:
--           number of ops, number of keys, and for each op
--           rule, kind, number of its key, number of its block's or 0, n, over, life
--         Of equal takes by a rule with a block; the keys are the counter and the block:
--           many, rule, n, how many
--         n      units; of refund, those that were charged
--         over   count and add: what is counted over; refund: where it was charged; take:
--                how many us later the units may be spent, 0 in the first form
--         life   refund: the life of the counter that was charged
-- Result  seven integers for each op: verdict, remaining, us to retry, us to reset,
--         count, where it was charged, life of the counter. The verdict is 1 done,
--         0 not done, -1 not done and its own rule denied; of each op of a group that
--         did nothing at all, -2 a count would leave 2^53, -3 a key is something else's.
--         Of equal takes nine: what series returns, or -2 or -3
-- Clock   the server's, read once
-- Atomic  because a script is: nothing runs between check and charge
-- Numbers are integers of at most 2^53, which Go checked for those in ARGV.

local protected = pcall
local call, pcall, floor, fmod, number = redis.call, redis.pcall, math.floor, math.fmod, tonumber
local byte, char, sub, format = string.byte, string.char, string.sub, string.format
local most = 9007199254740992

-- foreign is the error of a call whose key is something else's, or was changed by somebody
-- else. It is raised before the first write, and fails only the call itself.
local foreign = {}

-- Words are seven bytes, little-endian, and hold up to 2^53: hardly any text does.
-- string.byte is in every Lua that runs Redis scripts, struct is not.
local function decode(s, at)
  local a, b, c, d, e, f, g = byte(s, at + 1, at + 7)
  if not g then error(foreign) end
  local v = a + b * 0x100 + c * 0x10000 + d * 0x1000000
    + e * 0x100000000 + f * 0x10000000000 + g * 0x1000000000000
  if v > most then error(foreign) end
  return v
end

local function encode(v)
  local a = v % 256 v = (v - a) / 256
  local b = v % 256 v = (v - b) / 256
  local c = v % 256 v = (v - c) / 256
  local d = v % 256 v = (v - d) / 256
  local e = v % 256 v = (v - e) / 256
  local f = v % 256
  return char(a, b, c, d, e, f, (v - f) / 256)
end

-- ceil divides integers. The remainder is exact, the quotient alone is not.
local function ceil(a, b)
  local rest = fmod(a, b)
  if rest > 0 then return (a - rest) / b + 1 end
  return (a - rest) / b
end

-- digits writes an integer as Redis takes it, and shorter than Redis would.
local function digits(v) return format('%.0f', v) end

local server
local function rule(h) -- where in ARGV it says how many values it has
  local now = number(ARGV[h + 2])
  if now == 0 then
    if not server then
      local t = call('TIME')
      server = t[1] * 1000000 + t[2]
    end
    now = server
  end
  local r = {
    algorithm = ARGV[h + 1], now = now, ttl = number(ARGV[h + 3]), life = ARGV[h + 3],
    limit = number(ARGV[h + 4]), per = number(ARGV[h + 5]),
    x = number(ARGV[h + 6]), y = number(ARGV[h + 7]), z = number(ARGV[h + 8]),
  }
  if number(ARGV[h]) > 8 then r.after, r.duration = number(ARGV[h + 9]), number(ARGV[h + 10]) end
  return r
end

local rules, out, o = {}, {}, 0

-- answer adds the result of one op.
local function answer(verdict, remaining, retry, reset, count, where, life)
  out[o + 1], out[o + 2], out[o + 3], out[o + 4] = verdict, remaining, retry, reset
  out[o + 5], out[o + 6], out[o + 7] = count, where, life
  o = o + 7
end

-- By the name of the algorithm, which may have none: quick does one op if it is easy. It
-- says whether it did, and if not, what it has read, up to three values. What it leaves,
-- the functions do that make makes, which is only then. Both may raise foreign.
local quick, make = {}, {}
