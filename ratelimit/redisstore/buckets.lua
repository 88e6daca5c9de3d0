-- buckets: a counter in time buckets, of running totals.
--
-- Rule   limit; length of a bucket, size of the ring, buckets before the newest that the limit is
--        over; ttl (ms)
-- Key    a string: 'lrb1' and then words of seven bytes, little-endian:
--          life   when the counter began
--          epoch  number of the newest bucket, time / interval; it never goes back
--          total  units charged so far
--          ring   the totals as the newest size buckets began, that of bucket x at x % size
--        so the units of a bucket and all after it are one subtraction, and a gap is filled by
--        one or two writes. It lives for ttl ms after the first charge in the newest bucket.
-- State  life, epoch, total; epoch is nil if there is no key
-- Shows  units used; when one unit passes, when n do, when all have left; epoch, life
-- Where  a unit was charged: the number of the bucket, and the counter's life
-- Over   is counted in buckets before the newest

local byte, char, sub, rep = string.byte, string.char, string.sub, string.rep
local mark, ring_at = 'lrb1', 25

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

-- decode returns the word after so many bytes.
local function decode(s, at)
  local a, b, c, d, e, f, g = byte(s, at + 1, at + 7)
  if not g or g > 32 then error(foreign, 0) end
  return a + b * 0x100 + c * 0x10000 + d * 0x1000000
    + e * 0x100000000 + f * 0x10000000000 + g * 0x1000000000000
end

-- newest returns the number of the bucket that the time has reached.
local function newest(r, epoch) return max(epoch or 0, floor(now / r.interval)) end

-- began returns the total as bucket x began. Buckets after epoch began with all.
local function began(key, r, x, epoch, total)
  if not epoch or x > epoch then return total end
  local at = ring_at + 7 * (x % r.size)
  return decode(call('GETRANGE', key, at, at + 6), 0)
end

-- leaves returns when the window begins with at least need charged before it.
local function leaves(key, r, need, epoch, total)
  local ring, last = call('GETRANGE', key, '25', '-1'), newest(r, epoch)
  local low, high = 0, r.window
  while low < high do
    local middle = floor((low + high) / 2)
    local x = last - r.window + 1 + middle
    if (x > epoch and total or decode(ring, 7 * (x % r.size))) >= need then high = middle else low = middle + 1 end
  end
  return (last + 1 + low) * r.interval
end

-- put writes n words to the ring, the first that of bucket x.
local function put(key, r, x, n, words)
  local from = x % r.size
  local fit = math.min(n, r.size - from)
  call('SETRANGE', key, ring_at + 7 * from, sub(words, 1, 7 * fit))
  if fit < n then call('SETRANGE', key, ring_at, sub(words, 7 * fit + 1)) end
end

-- fill begins the buckets that the time has reached, and returns the newest.
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

-- lower takes n off the total, and off those as bucket x and all after it began.
local function lower(key, r, x, n, epoch, total)
  local words, lowered = {}, encode(total - n)
  for i = x, epoch do words[#words + 1] = encode(began(key, r, i, epoch, total) - n) end
  if #words > 0 then put(key, r, x, #words, table.concat(words)) end
  call('SETRANGE', key, '18', lowered)
  return total - n
end

algorithms.buckets = {
  width = 6,
  size = 5,

  rule = function(at)
    return {
      limit = number(ARGV[at]), interval = number(ARGV[at + 1]), size = number(ARGV[at + 2]),
      window = number(ARGV[at + 3]), ttl = number(ARGV[at + 4]),
    }
  end,

  -- A new bucket is written to the ring, which must not complete one that was cut.
  read = function(key, r)
    local s = try('GETRANGE', key, '0', '24')
    if s == '' and call('EXISTS', key) == 0 then return r.limit, now, nil, 0 end
    if type(s) == 'table' then fail(s) end
    if sub(s, 1, 4) ~= mark then error(foreign, 0) end
    local life, epoch, total = decode(s, 4), decode(s, 11), decode(s, 18)
    local last = newest(r, epoch)
    local cut = last > epoch and call('STRLEN', key) ~= ring_at + 7 * r.size
    if cut or epoch * r.interval >= most then error(foreign, 0) end
    return r.limit - total + began(key, r, last - r.window, epoch, total), life, epoch, total
  end,

  charge = function(key, r, n, _, life, epoch, total)
    if not epoch then
      epoch = newest(r)
      local words = encode(life) .. encode(epoch) .. encode(n) .. rep('\0', 7 * r.size)
      call('SET', key, mark .. words, 'PX', r.ttl)
      return life, epoch, n
    end
    local oldest = newest(r, epoch) - r.size + 1
    if n > most - total and n > most - total + began(key, r, oldest, epoch, total) then error(overflow, 0) end
    epoch = fill(key, r, epoch, total)
    if n > most - total then -- only differences matter
      total = lower(key, r, oldest, began(key, r, oldest, epoch, total), epoch, total)
    end
    call('SETRANGE', key, '18', encode(total + n))
    return life, epoch, total + n
  end,

  show = function(key, r, one, n, life, epoch, total)
    local used = total - began(key, r, newest(r, epoch) - r.window, epoch, total)
    local function wait(n)
      if n == 0 or n > r.limit or n <= r.limit - used then return 0 end
      return leaves(key, r, total - r.limit + n, epoch, total)
    end
    local reset = (newest(r, epoch) + 1 + r.window) * r.interval -- if the newest was charged
    if one == 0 then reset = used > 0 and leaves(key, r, total, epoch, total) or 0 end
    out[o + 1], out[o + 2], out[o + 3], out[o + 4] = used, wait(one), wait(n), reset
    out[o + 5], out[o + 6] = epoch or 0, life
    o = o + 6
  end,
}

-- Only groups need what follows.

function algorithms.buckets.fits(key, r, n, _, epoch, total)
  return n <= most - total + began(key, r, newest(r, epoch) - r.size + 1, epoch, total)
end

function algorithms.buckets.count(key, r, over, _, epoch, total)
  return total - began(key, r, newest(r, epoch) - over, epoch, total)
end

function algorithms.buckets.refund(key, r, n, x, kept, life, epoch, total)
  local last = newest(r, epoch)
  if not epoch or kept ~= life or x > epoch or x <= last - r.size
    or began(key, r, x + 1, epoch, total) - began(key, r, x, epoch, total) < n then
    return false, life, epoch, total
  end
  epoch = fill(key, r, epoch, total)
  return true, life, epoch, lower(key, r, x + 1, n, epoch, total)
end
