-- window: a window that begins with its first charge.
--
-- Key    two integers: when the window ends, and the units charged in it. It lives as long.
-- State  the same; of a window that has not begun, the end that it would have
-- Shows  units used, end of the window
-- Where  a unit was charged: the end of the window

algorithms.window = {
  width = 2,

  read = function(key, r)
    local ends, used = load(key)
    if not ends or ends <= now then return now + r.per, 0 end
    return ends, used
  end,

  room = function(_, r, _, used) return r.limit - used end,

  fits = function(_, _, n, _, used) return n <= most - used end,

  charge = function(key, _, n, _, ends, used)
    save(key, ends, used + n, ends - now)
    return ends, used + n
  end,

  count = function(_, _, _, _, used) return used end,

  refund = function(key, _, n, at, _, ends, used)
    if at ~= ends or n > used then return false, ends, used end
    save(key, ends, used - n, ends - now)
    return true, ends, used - n
  end,

  show = function(_, _, _, _, ends, used)
    add(used)
    add(ends)
  end,
}
