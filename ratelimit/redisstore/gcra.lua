-- gcra: a level that every unit raises and time lowers.
--
-- A unit raises the level by per, which falls by limit in every us, and burst * per is full:
-- all of these are integers, so that every rate is exact. Only an add can raise it above 2^53;
-- then it is rounded to 2^10.
--
-- Rule   limit, per, burst
-- Key    a string: when the level was last raised, and what it was then. It lives until the
--        level is 0.
-- State  the same
-- Shows  the same, level first
-- Where  a unit was charged: when, and life is the level that the charge left

-- fallen returns what is left of a level.
local function fallen(r, at, level)
  if now <= at then return level end -- the clock went back
  return max(0, level - (now - at) * r.limit) -- not exact below -2^53, but then 0
end

local longest = 6e12 -- ms that a key lives: 190 years

local function save(key, r, at, level)
  local life = ceil((at - now + level / r.limit) / 1000)
  call('SET', key, format('%.0f %.0f', at, level), 'PX', digits(math.min(max(1, life), longest)))
end

algorithms.gcra = {
  width = 2,
  size = 3,

  rule = function(at)
    local r = {limit = number(ARGV[at]), per = number(ARGV[at + 1]), burst = number(ARGV[at + 2])}
    r.most = math.min(most, floor(most / r.per) * 1000) -- units that there can be
    return r
  end,

  read = function(key, r)
    local at, level = pair(key, 1000 * most)
    if not at then at, level = now, 0 end
    local free = r.burst * r.per - fallen(r, at, level)
    return (free - fmod(free, r.per)) / r.per, at, level
  end,

  -- Units that are charged ahead must still be in the level when they are spent.
  charge = function(key, r, n, ahead, at, level)
    level = max(fallen(r, at, level), ahead * r.limit) + n * r.per
    at = max(at, now)
    save(key, r, at, level)
    return at, level
  end,

  show = function(_, _, _, _, at, level)
    out[o + 1], out[o + 2] = level, at
    o = o + 2
  end,
}

-- Only groups need what follows.

function algorithms.gcra.fits(_, r, n, at, level)
  level = fallen(r, at, level)
  return n <= r.most - (level - fmod(level, r.per)) / r.per
end

function algorithms.gcra.count() return 0 end

-- Only the last charge can be taken back: then the level is what the charge left.
function algorithms.gcra.refund(key, r, n, where, life, at, level)
  if where ~= at or life ~= level or n * r.per > level or fallen(r, at, level) == 0 then return false, at, level end
  level = level - n * r.per
  if level > 0 then
    save(key, r, at, level)
    return true, at, level
  end
  call('DEL', key)
  return true, now, 0
end
