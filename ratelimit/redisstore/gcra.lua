-- gcra: a level that every unit raises and time lowers.
--
-- A unit raises the level by per, which falls by limit in every us, and burst * per is full:
-- all of these are integers, so that every rate is exact.
--
-- Key    two integers: when the level was last raised, and what it was then. It lives until the
--        level is 0.
-- State  the same
-- Shows  the same, level first
-- Where  a unit was charged: when, and life is the level that the charge left

-- fallen returns what is left of a level.
local function fallen(r, at, level)
  if now <= at then return level end -- the clock went back
  return math.max(0, level - (now - at) * r.limit) -- not exact below -2^53, but then 0
end

local function save_level(key, r, at, level) save(key, at, level, at - now + level / r.limit) end

algorithms.gcra = {
  width = 2,

  read = function(key)
    local at, level = load(key)
    return at or now, level or 0
  end,

  room = function(_, r, at, level)
    local free = r.burst * r.per - fallen(r, at, level)
    return free > 0 and quotient(free, r.per) or 0
  end,

  fits = function(_, r, n, at, level) return n * r.per <= most - fallen(r, at, level) end,

  -- Units that are charged ahead must still be in the level when they are spent.
  charge = function(key, r, n, ahead, at, level)
    level = math.max(fallen(r, at, level), ahead * r.limit) + n * r.per
    at = math.max(at, now)
    save_level(key, r, at, level)
    return at, level
  end,

  count = function() return 0 end,

  -- Only the last charge can be taken back: then the level is what the charge left.
  refund = function(key, r, n, where, life, at, level)
    if where ~= at or life ~= level or n * r.per > level or fallen(r, at, level) == 0 then return false, at, level end
    level = level - n * r.per
    if level > 0 then
      save_level(key, r, at, level)
      return true, at, level
    end
    call('DEL', key)
    return true, now, 0
  end,

  show = function(_, _, _, _, at, level)
    add(level)
    add(at)
  end,
}
