-- gcra: a level that every unit raises and time lowers; in Go it is gcraPair, with the same
-- answers.
--
-- Key     a string, 'lrg1' and then words: when the level was last raised (us), what it
--         was then. It lives until the level is 0.
-- Rules   x is the burst. A unit raises the level by per, which falls by limit in every
--         us, and burst * per is full: all are integers, so every rate is exact. Go
--         checked that no level is above 2^53.

-- level returns what is left of a level, and the us until it begins to fall: more than 0 if
-- the clock went back.
local function level(r, at, was)
  local past = r.now - at
  if past <= 0 then return was, -past end
  local fallen = past * r.limit -- not exact above 2^53, but then above every level
  if fallen >= was then return 0, 0 end
  return was - fallen, 0
end

-- gcra says what a take of n gets at a level: 1 or 0, what remains, us to retry, us to
-- reset.
local function gcra(r, lev, behind, n)
  local free, remaining, retry, reset, passes = r.x * r.per - lev, 0, 0, 0, 1
  if free > 0 then remaining = (free - fmod(free, r.per)) / r.per end
  if n > remaining then passes, retry = 0, behind + ceil(n * r.per - free, r.limit) end
  if lev > 0 then reset = behind + ceil(lev, r.limit) end
  return passes, remaining, retry, reset
end

-- write keeps a level until it has fallen to 0.
local function write(r, name, at, lev)
  local lasts = math.max(1, ceil(ceil(lev, r.limit) + at - r.now, 1000))
  call('SET', name, 'lrg1' .. encode(at) .. encode(lev), 'PX', digits(lasts))
end

make.gcra = function()
  return {
    load = function(c, r)
      local s = pcall('GET', c.key)
      if not s then
        c.new, c.at, c.level = true, c.now, 0
        return
      end
      if type(s) ~= 'string' or #s ~= 18 or sub(s, 1, 4) ~= 'lrg1' then error(foreign) end
      c.at, c.level, c.rule = decode(s, 4), decode(s, 11), r
    end,

    longer = function() end,

    fits = function(c, r, n) return n * r.per <= most - level(r, c.at, c.level) end,

    count = function() return 0 end,

    passes = function(c, r, n) return n * r.per <= r.x * r.per - level(r, c.at, c.level) end,

    check = function(c, r, n)
      local lev, behind = level(r, c.at, c.level)
      return gcra(r, lev, behind, n)
    end,

    -- Units that are charged ahead must still be in the level when they are spent.
    charge = function(c, r, n, ahead)
      c.level = math.max(level(r, c.at, c.level), ahead * r.limit) + n * r.per
      c.at, c.new, c.dirty, c.rule = math.max(c.at, r.now), false, true, r
      c.life = c.level
      return c.at
    end,

    refund = function(c, r, n, at, life)
      if n <= 0 or n * r.per > c.level or at ~= c.at or life ~= c.level or level(r, at, life) == 0 then return false end
      c.level, c.dirty, c.rule = c.level - n * r.per, true, r
      if c.level == 0 then c.at = c.now end -- as a fresh one
      return true
    end,

    reset = function(c)
      call('DEL', c.key)
      c.new, c.dirty, c.at, c.level = true, false, c.now, 0
    end,

    save = function(c)
      if c.dirty and c.level == 0 then
        call('DEL', c.key)
      elseif c.dirty or not c.new and call('PTTL', c.key) < 0 then write(c.rule, c.key, c.at, c.level) end
    end,
  }
end
