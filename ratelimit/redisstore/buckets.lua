-- This algorithm counts in time buckets. Each bucket holds a running total.
--
-- Rule       limit; bucket length; ring size; the number of buckets before the newest that the limit
--            covers; TTL in ms
-- Key        a string: 'lrb1' and words of seven bytes, little-endian:
--              generation  the time at which the counter began
--              epoch       the number of the newest bucket, time / interval; it never decreases
--              total       the units charged so far
--              ring        the totals at the beginning of the newest buckets; bucket x is at x % size
--            The total minus an entry of the ring is the number of units in that bucket and all later
--            buckets. The key expires ttl ms after the first charge in the newest bucket.
-- State      generation, epoch, total; epoch is nil if the key does not exist
-- Report     the units used; the times at which one unit passes, n units pass, and the quota is full;
--            epoch; generation
-- Charge at  the number of the bucket; a receipt also has the counter's generation
-- Interval   is a number of buckets before the newest

local byte, char, sub, rep = string.byte, string.char, string.sub, string.rep
local magic, ring_at = 'lrb1', 25
local last_x, last_r, last_from, last_to -- the last bucket and rule of total_at, and the range of its bytes

local function encode(v)
  if v < 0 then error(foreign, 0) end
  local a = v % 256 v = (v - a) / 256
  local b = v % 256 v = (v - b) / 256
  local c = v % 256 v = (v - c) / 256
  local d = v % 256 v = (v - d) / 256
  local e = v % 256 v = (v - e) / 256
  local f = v % 256
  return char(a, b, c, d, e, f, (v - f) / 256)
end

-- decode returns the word at an offset, which is in bytes.
local function decode(s, at)
  local a, b, c, d, e, f, g = byte(s, at + 1, at + 7)
  if not g or g > 32 then error(foreign, 0) end
  return a + b * 0x100 + c * 0x10000 + d * 0x1000000
    + e * 0x100000000 + f * 0x10000000000 + g * 0x1000000000000
end

-- newest returns the number of the current bucket.
local function newest(r, epoch) return max(epoch or 0, floor(now / r.interval)) end

-- total_at returns the total at the beginning of bucket x. If x is later than epoch, that is total.
local function total_at(key, r, x, epoch, total)
  if not epoch or x > epoch then return total end
  if x ~= last_x or r ~= last_r then -- most keys of a call need the same bucket
    local at = ring_at + 7 * (x % r.size)
    last_x, last_r, last_from, last_to = x, r, digits(at), digits(at + 6)
  end
  return decode(call('GETRANGE', key, last_from, last_to), 0)
end

-- time_of returns the time until which all units up to a total of need will have left the window.
local function time_of(key, r, need, epoch, total)
  local ring, last = call('GETRANGE', key, '25', '-1'), newest(r, epoch)
  local low, high = 0, r.window
  while low < high do
    local middle = floor((low + high) / 2)
    local x = last - r.window + 1 + middle
    if (x > epoch and total or decode(ring, 7 * (x % r.size))) >= need then high = middle else low = middle + 1 end
  end
  return (last + 1 + low) * r.interval
end

-- put writes n words to the ring, from bucket x on.
local function put(key, r, x, n, words)
  local from = x % r.size
  local fit = math.min(n, r.size - from)
  call('SETRANGE', key, ring_at + 7 * from, sub(words, 1, 7 * fit))
  if fit < n then call('SETRANGE', key, ring_at, sub(words, 7 * fit + 1)) end
end

-- fill begins all buckets up to the current time, and returns the number of the newest bucket.
local function fill(key, r, epoch, total)
  local last = newest(r, epoch)
  local n = math.min(last - epoch, r.size)
  if n > 0 then
    put(key, r, last - n + 1, n, rep(encode(total), n))
    call('SETRANGE', key, '11', encode(last))
    call('PEXPIRE', key, digits(r.ttl))
  end
  return last
end

-- lower subtracts n from the total, and from the ring's totals of bucket x and all later buckets.
local function lower(key, r, x, n, epoch, total)
  local words, lowered = {}, encode(total - n)
  for i = x, epoch do words[#words + 1] = encode(total_at(key, r, i, epoch, total) - n) end
  if #words > 0 then put(key, r, x, #words, table.concat(words)) end
  call('SETRANGE', key, '18', lowered)
  return total - n
end

local rule_size, report_size = 5, 6

local function rule(at)
  return {
    limit = number(ARGV[at]), interval = number(ARGV[at + 1]), size = number(ARGV[at + 2]),
    window = number(ARGV[at + 3]), ttl = number(ARGV[at + 4]),
  }
end

-- read raises foreign for a truncated ring if a new bucket is needed, because the write would extend the ring.
local function read(key, r)
  local s = try('GETRANGE', key, '0', '24')
  if s == '' and call('EXISTS', key) == 0 then return now, nil, 0 end
  if type(s) == 'table' then fail(s) end
  if sub(s, 1, 4) ~= magic then error(foreign, 0) end
  local generation, epoch, total = decode(s, 4), decode(s, 11), decode(s, 18)
  local truncated = newest(r, epoch) > epoch and call('STRLEN', key) ~= ring_at + 7 * r.size
  if truncated or epoch * r.interval >= max_count then error(foreign, 0) end
  return generation, epoch, total
end

-- count returns the units in the newest bucket and a number of buckets before it.
local function count(key, r, before, _, epoch, total)
  local units = total - total_at(key, r, newest(r, epoch) - before, epoch, total)
  if units < 0 then error(foreign, 0) end
  return units
end

local function room(key, r, ...) return r.limit - count(key, r, r.window, ...) end

local function fits(key, r, n, _, epoch, total)
  return n <= max_count - total or n <= max_count - total + total_at(key, r, newest(r, epoch) - r.size + 1, epoch, total)
end

local function charge(key, r, n, _, generation, epoch, total)
  if not epoch then
    epoch = newest(r)
    local words = encode(generation) .. encode(epoch) .. encode(n) .. rep('\0', 7 * r.size)
    call('SET', key, magic .. words, 'PX', r.ttl)
    return generation, epoch, n
  end
  if not fits(key, r, n, generation, epoch, total) then error(overflow, 0) end
  local oldest = newest(r, epoch) - r.size + 1
  epoch = fill(key, r, epoch, total)
  if n > max_count - total then -- subtracts the oldest total, because only differences of totals matter
    total = lower(key, r, oldest, total_at(key, r, oldest, epoch, total), epoch, total)
  end
  call('SETRANGE', key, '18', encode(total + n))
  return generation, epoch, total + n
end

local function report(key, r, one, n, generation, epoch, total)
  local used, next, retry, reset = 0, 0, 0, 0
  if r.limit > 0 then
    used = count(key, r, r.window, generation, epoch, total)
    local function wait(n)
      if n == 0 or n > r.limit or n <= r.limit - used then return 0 end
      return time_of(key, r, total - r.limit + n, epoch, total)
    end
    next, retry, reset = wait(one), wait(n), (newest(r, epoch) + 1 + r.window) * r.interval -- if the newest bucket has units
    if one == 0 then reset = used > 0 and time_of(key, r, total, epoch, total) or 0 end
  end
  out[o + 1], out[o + 2], out[o + 3], out[o + 4] = used, next, retry, reset
  out[o + 5], out[o + 6] = epoch or 0, generation
  o = o + 6
end

-- Takes and peeks do not need what follows.

local function refund(key, r, n, x, kept, generation, epoch, total)
  local last = newest(r, epoch)
  if not epoch or kept ~= generation or x > epoch or x <= last - r.size
    or total_at(key, r, x + 1, epoch, total) - total_at(key, r, x, epoch, total) < n then
    return false, generation, epoch, total
  end
  epoch = fill(key, r, epoch, total)
  return true, generation, epoch, lower(key, r, x + 1, n, epoch, total)
end
