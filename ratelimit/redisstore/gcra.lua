-- gcra: a level that every unit raises and time lowers.
--
-- A level is whole units and a rest, in 1/per: all are integers, so that every rate is exact. limit
-- 1/per fall in every us, and burst units are full. An add may raise it higher.
--
-- Rule   limit, per, burst; most is how many units there can be
-- Key    a string: when the level was last raised, and the units and the rest that it was then. It
--        lives until the level is 0, or longest.
-- State  the same
-- Shows  units, rest, when
-- Where  a unit was charged: when, and life is the units and the rest that the charge left

-- fall returns the units and the rest that fall in so many us.
local function fall(r, us)
  local units, rest, all = 0, fmod(r.limit, r.per), us * r.limit
  if all <= most then
    rest = fmod(all, r.per)
    return (all - rest) / r.per, rest
  end
  -- More than a number holds: bit by bit, from the highest.
  local unit, part, bit = (r.limit - rest) / r.per, rest, most
  rest = 0
  while bit >= 1 do
    units, rest = 2 * units, 2 * rest
    if rest >= r.per then units, rest = units + 1, rest - r.per end
    if us >= bit then
      us, units, rest = us - bit, units + unit, rest + part
      if rest >= r.per then units, rest = units + 1, rest - r.per end
    end
    bit = bit / 2
  end
  return units, rest
end

-- fallen returns what is left of a level.
local function fallen(r, at, units, rest)
  if now <= at then return units, rest end -- the clock went back
  local gone, part = fall(r, now - at)
  units, rest = units - gone, rest - part
  if rest < 0 then units, rest = units - 1, rest + r.per end
  if units < 0 then return 0, 0 end
  return units, rest
end

local longest = 6e12 -- ms that a key lives, which are 190 years

local function save(key, r, at, units, rest)
  local life = ceil((at - now + (units * r.per + rest) / r.limit) / 1000)
  life = math.min(max(1, life), longest)
  call('SET', key, format('%.0f %.0f %.0f', at, units, rest), 'PX', digits(life))
end

algorithms.gcra = {
  width = 3,
  size = 3,

  rule = function(at)
    local r = {limit = number(ARGV[at]), per = number(ARGV[at + 1]), burst = number(ARGV[at + 2])}
    r.most = math.min(most, floor(most / r.per) * 1000)
    return r
  end,

  read = function(key, r)
    local at, units, rest = integers(key, '^(%d+) (%d+) (%d+)$')
    if not at then at, units, rest = now, 0, 0 end
    if units > r.most or rest >= r.per then error(foreign, 0) end
    local used, part = fallen(r, at, units, rest)
    return r.burst - used - (part > 0 and 1 or 0), at, units, rest
  end,

  -- Units that are charged ahead must still be in the level when they are spent.
  charge = function(key, r, n, ahead, at, units, rest)
    units, rest = fallen(r, at, units, rest)
    if ahead > 0 then
      local falls, part = fall(r, ahead)
      if falls > units or falls == units and part > rest then units, rest = falls, part end
    end
    units, at = units + n, max(at, now)
    save(key, r, at, units, rest)
    return at, units, rest
  end,

  show = function(_, _, _, _, at, units, rest)
    out[o + 1], out[o + 2], out[o + 3] = units, rest, at
    o = o + 3
  end,
}

-- Only groups need what follows.

function algorithms.gcra.fits(_, r, n, at, units, rest) return n <= r.most - fallen(r, at, units, rest) end

function algorithms.gcra.count() return 0 end

-- Only the last charge can be taken back: then the level is what the charge left.
function algorithms.gcra.refund(key, r, n, where, life, at, units, rest)
  local used, part = fallen(r, at, units, rest)
  if where ~= at or life ~= format('%.0f %.0f', units, rest) or n > units or used + part == 0 then
    return false, at, units, rest
  end
  units = units - n
  if units + rest > 0 then
    save(key, r, at, units, rest)
    return true, at, units, rest
  end
  call('DEL', key)
  return true, now, 0, 0
end
