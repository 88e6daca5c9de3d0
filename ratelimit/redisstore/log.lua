-- This algorithm stores every charge as an event (log_event.lua). There are two encodings: a sorted set
-- (log_set.lua) and a stream (log_stream.lua).
--
-- Rule       limit, per
-- Key        the events of the window. The key expires when the newest event leaves the window.
-- State      at and sum of the newest event; zeros if there is none
-- Report     the units used; the times at which one unit passes, n units pass, and the quota is full; at
-- Charge at  the event's at
-- Interval   is in µs
--
-- An encoding comes before this file. It defines these functions:
--   newest(key)                   returns at and sum of the newest event, or zeros
--   after(key, at)                returns the first event after a time, or nil
--   reached(key, sum, cut, at)    returns the time of the first event after cut with at least this sum.
--                                 at is the time of the newest event
--   append(key, at, sum, n, cut)  adds an event, and may remove the events up to cut
--   change(key, from, f)          replaces sum and n of each event from this time on with the result of
--                                 f(at, sum, n), and removes the event if the new n is 0

local rule_size, report_size = 2, 5

local function rule(at) return {limit = number(ARGV[at]), per = number(ARGV[at + 1])} end

local read = newest

-- since returns the units that were charged after a time.
local function since(key, cut, at, sum)
  if sum == 0 or at <= cut then return 0 end
  local _, first, n = after(key, cut)
  local units = sum - first + n
  if units < 0 then error(foreign, 0) end
  return units
end

local function room(key, r, at, sum) return r.limit - since(key, now - r.per, at, sum) end

local function charge(key, r, n, prepaid, at, sum)
  local cut = now - r.per
  if sum == 0 or at <= cut then
    if sum > 0 then call('DEL', key) end
    at, sum = 0, 0
  elseif n > max_count - sum then -- subtracts the units before the window, because only differences of sums matter
    local _, first, m = after(key, cut)
    change(key, cut + 1, function(_, s, c) return s - first + m, c end)
    sum = sum - first + m
  end
  at = max(at, now + prepaid)
  append(key, at, sum + n, n, cut)
  expire(key, at + r.per - now)
  return at, sum + n
end

local function report(key, r, one, n, at, sum)
  local used, next, retry, reset, cut = 0, 0, 0, 0, now - r.per
  if r.limit > 0 then
    used = since(key, cut, at, sum)
    local function wait(n)
      if n == 0 or n > r.limit or n <= r.limit - used then return 0 end
      return reached(key, sum - r.limit + n, cut, at) + r.per
    end
    next, retry, reset = wait(one), wait(n), used > 0 and at + r.per or 0
  end
  out[o + 1], out[o + 2], out[o + 3], out[o + 4], out[o + 5] = used, next, retry, reset, at
  o = o + 5
end

-- Takes and peeks do not need what follows.

local function fits(key, r, n, at, sum) return n <= max_count - since(key, now - r.per, at, sum) end

local function count(key, _, interval, at, sum) return since(key, now - interval, at, sum) end

local function refund(key, r, n, charged_at, _, at, sum)
  if n == 0 or charged_at <= now - r.per or charged_at > at then return false, at, sum end
  local units = since(key, charged_at - 1, at, sum) - since(key, charged_at, at, sum)
  if units < n then return false, at, sum end
  local left = n
  change(key, charged_at, function(t, s, m)
    local back = t == charged_at and math.min(left, m) or 0
    left = left - back
    return s - n + left, m - back
  end)
  at, sum = newest(key)
  if sum > 0 then expire(key, at + r.per - now) end
  return true, at, sum
end
