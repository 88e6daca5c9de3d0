-- log: a counter that stores every charge as an event. There are two encodings: a sorted set
-- (log_set.lua) and a stream (log_stream.lua).
--
-- Rule       limit, per
-- Event      at, sum, n: n units were charged at this time; sum is the total including them. The
--            units in a window are the difference of two sums, and a search finds the time at which
--            units leave the window. Events are in order of time: if the clock went back, a charge
--            has the newest event's time.
-- Key        the events of the window. It expires when the newest event leaves the window.
-- State      at and sum of the newest event; zeros if there is none
-- Report     units used; the times when one unit passes, when n units pass, when the quota is full; at
-- Charge at  the event's at
-- Interval   is in us
--
-- An encoding has these functions:
--   newest(key)                   returns at and sum of the newest event, or zeros
--   after(key, at)                returns the first event after a time, or nil
--   reached(key, sum, cut, at)    returns the time at which sum was reached, between cut and at, the
--                                 time of the newest event
--   append(key, at, sum, n, cut)  adds an event, and may remove the events up to cut
--   change(key, at, f)            replaces sum and n of the events from at on by the results of f for
--                                 them; an event with n = 0 is removed. f may get earlier events, too

-- check_event returns an event. It raises foreign if the numbers are not an event.
local function check_event(at, sum, n)
  if not (at and sum and n) or at % 1 ~= 0 or at > max_count or sum > max_count or n < 1 or n > sum then error(foreign, 0) end
  return at, sum, n
end

local function make_log(log)
  -- since returns the units that were charged after a time.
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

    fits = function(key, r, n, at, sum) return n <= max_count - since(key, now - r.per, at, sum) end,

    charge = function(key, r, n, prepaid, at, sum)
      local cut = now - r.per
      if sum == 0 or at <= cut then
        if sum > 0 then call('DEL', key) end
        at, sum = 0, 0
      elseif n > max_count - sum then -- only differences of sums matter
        local _, first, m = log.after(key, cut)
        log.change(key, cut + 1, function(_, s, c) return s - first + m, c end)
        sum = sum - first + m
      end
      at = max(at, now + prepaid)
      log.append(key, at, sum + n, n, cut)
      expire(key, at + r.per - now)
      return at, sum + n
    end,

    count = function(key, _, interval, at, sum) return since(key, now - interval, at, sum) end,

    refund = function(key, r, n, charged_at, _, at, sum)
      if n == 0 or charged_at <= now - r.per or charged_at > at then return false, at, sum end
      local units = since(key, charged_at - 1, at, sum) - since(key, charged_at, at, sum)
      if units < n then return false, at, sum end
      local left = n
      log.change(key, charged_at, function(t, s, m)
        local back = t == charged_at and math.min(left, m) or 0
        left = left - back
        return s - n + left, m - back
      end)
      at, sum = log.newest(key)
      if sum > 0 then expire(key, at + r.per - now) end
      return true, at, sum
    end,

    report = function(key, r, one, n, at, sum)
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
