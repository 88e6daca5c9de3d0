-- This algorithm keeps a level that rises with each unit and falls with time.
--
-- A unit raises the level by per. The level falls by limit each microsecond. No unit passes if the level
-- would exceed burst * per. All of these are integers, so every rate is exact. Only an add can raise the
-- level above 2^53. Such a level is rounded to a multiple of at most 2^10.
--
-- Rule       limit, per, burst
-- Key        a string: the time of the last charge, and the level after it. It expires when the
--            level is 0.
-- State      the same two values
-- Report     level, time of the last charge
-- Charge at  the time of the charge; generation is the level after the charge

-- level_now returns the current level, from the level at an earlier time.
local function level_now(r, at, level)
  if now <= at then return level end -- the clock went back
  return max(0, level - (now - at) * r.limit) -- a difference below -2^53 is not exact, but the result is 0
end

local max_ttl = 6e12 -- in ms, about 190 years

local function save(key, r, at, level)
  local ttl = ceil((at - now + level / r.limit) / 1000)
  call('SET', key, format('%.0f %.0f', at, level), 'PX', digits(math.min(max(1, ttl), max_ttl)))
end

local rule_size, report_size = 3, 2

local function rule(at)
  local r = {limit = number(ARGV[at]), per = number(ARGV[at + 1]), burst = number(ARGV[at + 2])}
  r.max_units = math.min(max_count, floor(max_count / r.per) * 1000) -- the largest number of units in a level
  return r
end

local function read(key)
  local at, level = pair(key, 1000 * max_count)
  if at then return at, level end
  return now, 0
end

local function room(_, r, at, level)
  local free = r.burst * r.per - level_now(r, at, level)
  return (free - fmod(free, r.per)) / r.per
end

-- Prepaid units must still be in the level when they are spent.
local function charge(key, r, n, prepaid, at, level)
  level = max(level_now(r, at, level), prepaid * r.limit) + n * r.per
  at = max(at, now)
  save(key, r, at, level)
  return at, level
end

local function report(_, _, _, _, at, level)
  out[o + 1], out[o + 2] = level, at
  o = o + 2
end

-- Takes and peeks do not need what follows.

local function fits(_, r, n, at, level)
  level = level_now(r, at, level)
  return n <= r.max_units - (level - fmod(level, r.per)) / r.per
end

local function count() return 0 end

-- refund works only for the last charge, because the stored level must be the level after that charge.
local function refund(key, r, n, charged_at, generation, at, level)
  if charged_at ~= at or generation ~= level or n * r.per > level or level_now(r, at, level) == 0 then return false, at, level end
  level = level - n * r.per
  if level > 0 then
    save(key, r, at, level)
    return true, at, level
  end
  call('DEL', key)
  return true, now, 0
end
