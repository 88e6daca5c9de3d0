-- window: a counter of a window that begins with its first charge; in Go it is windowPair,
-- with the same answers.
--
-- Key     a string, 'lrw1' and then words: which life of the counter this is, when its
--         window ends (us), units charged in it. It lives as long as its window, which
--         begins anew if its TTL was lost, because the end is in it.
-- Rules   x, y and z mean nothing.

make.window = function()
  local function used(c) return c.now < c.ends and c.units or 0 end

  return {
    load = function(c)
      local s = pcall('GET', c.key)
      if not s then
        c.new, c.life, c.ends, c.units = true, seed, c.now, 0
        seed = seed + 1
        return
      end
      if type(s) ~= 'string' or #s ~= 25 or sub(s, 1, 4) ~= 'lrw1' then error(foreign) end
      c.life, c.ends, c.units = decode(s, 4), decode(s, 11), decode(s, 18)
    end,

    longer = function() end,

    fits = function(c, r, n) return n <= most - used(c) end,

    count = function(c) return used(c) end,

    passes = function(c, r, n) return n <= r.limit - used(c) end,

    check = function(c, r, n)
      local u = used(c)
      local remaining, left = math.max(0, r.limit - u), c.ends - c.now
      local reset = u > 0 and left or 0
      if n <= remaining then return 1, remaining, 0, reset end
      return 0, remaining, left, reset
    end,

    charge = function(c, r, n)
      if c.now >= c.ends then c.ends, c.units = c.now + r.per, 0 end
      c.units, c.new, c.dirty = c.units + n, false, true
      return c.ends
    end,

    refund = function(c, r, n, ends, life)
      if n <= 0 or n > used(c) or ends ~= c.ends or life ~= c.life then return false end
      c.units, c.dirty = c.units - n, true
      return true
    end,

    reset = function(c)
      call('DEL', c.key)
      c.new, c.dirty, c.life, c.ends, c.units = true, false, seed, c.now, 0
      seed = seed + 1
    end,

    save = function(c)
      local left = math.max(1, ceil(c.ends - c.now, 1000))
      if c.dirty then
        call('SET', c.key, 'lrw1' .. encode(c.life) .. encode(c.ends) .. encode(c.units), 'PX', digits(left))
      elseif not c.new and call('PTTL', c.key) < 0 then
        call('PEXPIRE', c.key, digits(left))
      end
    end,
  }
end
