-- log: a counter that remembers every charge. There are two encodings: a sorted set
-- (log_set.lua) and a stream (log_stream.lua).
--
-- Rule    limit, per
-- Event   at, sum, n: n units were charged then, and sum is all units charged up to it and with
--         it. So what a window holds is the difference of two sums, and when units leave it is
--         a search. Events never go back in time: a clock that does charges at the newest
--         event's time.
-- Key     the events of the window. It lives as long as the newest is in the window.
-- State   at and sum of the newest event; zeros if there is none
-- Shows   units used; when one unit passes, when n do, when all have left; at
-- Where   a unit was charged: at
-- Over    is counted in us
--
-- An encoding has:
--   newest(key)             the time and the sum of the newest event; zeros if there is none
--   after(key, at)          the first event after a time, nil if there is none
--   reached(key, sum, cut, at)  when the sum was reached: after cut, and by the newest event
--   append(key, at, sum, n, cut)  adds an event; what is not after cut may be dropped
--   change(key, at, f)      replaces the events from a time on, at least, by what f makes of
--                           each: its sum and n. Those with n = 0 go

-- checked returns an event, if it can be one.
local function checked(at, sum, n)
  if not (at and sum and n) or at % 1 ~= 0 or at > most or sum > most or n < 1 or n > sum then error(foreign, 0) end
  return at, sum, n
end

local function make_log(log)
  -- since returns the units charged after a time.
  local function since(key, cut, at, sum)
    if sum == 0 or at <= cut then return 0 end
    local _, first, n = log.after(key, cut)
    return sum - first + n
  end

  return {
    width = 5,
    size = 2,

    rule = function(at) return {limit = number(ARGV[at]), per = number(ARGV[at + 1])} end,

    read = function(key, r)
      local at, sum = log.newest(key)
      return r.limit - since(key, now - r.per, at, sum), at, sum
    end,

    fits = function(key, r, n, at, sum) return n <= most - since(key, now - r.per, at, sum) end,

    charge = function(key, r, n, ahead, at, sum)
      local cut = now - r.per
      if sum == 0 or at <= cut then
        if sum > 0 then call('DEL', key) end
        at, sum = 0, 0
      elseif n > most - sum then -- only differences matter
        local _, first, m = log.after(key, cut)
        log.change(key, cut + 1, function(_, s, c) return s - first + m, c end)
        sum = sum - first + m
      end
      at = max(at, now + ahead)
      log.append(key, at, sum + n, n, cut)
      expire(key, at + r.per - now)
      return at, sum + n
    end,

    count = function(key, _, over, at, sum) return since(key, now - over, at, sum) end,

    refund = function(key, r, n, where, _, at, sum)
      if n == 0 or where <= now - r.per or where > at then return false, at, sum end
      local units = since(key, where - 1, at, sum) - since(key, where, at, sum)
      if units < n then return false, at, sum end
      local left = n
      log.change(key, where, function(t, s, m)
        local back = t == where and math.min(left, m) or 0
        left = left - back
        return s - n + left, m - back
      end)
      at, sum = log.newest(key)
      if sum > 0 then expire(key, at + r.per - now) end
      return true, at, sum
    end,

    show = function(key, r, one, n, at, sum)
      local cut = now - r.per
      local used = since(key, cut, at, sum)
      local function wait(n)
        if n == 0 or n > r.limit or n <= r.limit - used then return 0 end
        return log.reached(key, sum - r.limit + n, cut, at) + r.per
      end
      out[o + 1], out[o + 2], out[o + 3] = used, wait(one), wait(n)
      out[o + 4], out[o + 5] = used > 0 and at + r.per or 0, at
      o = o + 5
    end,
  }
end
