-- This algorithm counts the units in a window. A file before this one (window_fixed.lua or
-- window_calendar.lua) reads the rule. Its ends is the end of a window that begins now, or nil if the
-- client's clock is so wrong that the end is not known.
--
-- Key        a hash: ends is the time at which the window ends, and n the number of units charged in it.
--            The key expires when the window ends. The next window restores a lost TTL.
-- State      ends, n. Without a window, ends is the end that a window from now on would have, and n is 0
-- Report     n, ends
-- Charge at  the end of the window

local report_size = 2
local clocks_differ = 'CLOCK the clocks of Redis and its client differ by more than a window of the calendar'

local function read(key, r)
  local new_ends = r.ends or error(clocks_differ, 0)
  local w = try('HMGET', key, 'ends', 'n')
  if w.err then fail(w) end
  if not w[1] and not w[2] and call('EXISTS', key) == 0 then return new_ends, 0 end
  local ends, n = bounded(number(w[1])), bounded(number(w[2]))
  if ends <= now then return new_ends, 0 end
  return ends, n
end

local function room(_, r, _, n) return r.limit - n end

local function charge(key, _, more, _, ends, n)
  if n > 0 then
    call('HSET', key, 'n', digits(n + more))
  else
    call('HSET', key, 'ends', digits(ends), 'n', digits(more))
    expire(key, ends - now)
  end
  return ends, n + more
end

local function report(_, _, _, _, ends, n)
  out[o + 1], out[o + 2] = n, ends
  o = o + 2
end

-- Takes and peeks do not need what follows.

local function fits(_, _, more, _, n) return more <= max_count - n end

local function count(_, _, _, _, n) return n end

local function refund(key, _, less, at, _, ends, n)
  if at ~= ends or less > n then return false, ends, n end
  call('HSET', key, 'n', digits(n - less))
  return true, ends, n - less
end
