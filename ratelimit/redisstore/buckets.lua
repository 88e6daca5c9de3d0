-- buckets: a counter in time buckets; in Go it is bucketPair, with the same answers.
--
-- Key       a string, mark and then little-endian words of 7 bytes:
--             life   which life of the counter this is
--             epoch  number of the newest bucket, time / interval; it never goes back
--             total  units charged so far
--             ring   size words: the totals as the newest buckets began, that of
--                    bucket x at x % size
--           so the units of a bucket and all after it are one subtraction, and a gap
--           is filled by one or two writes. 7 bytes hold 2^53; string.byte is in every
--           Lua that runs Redis scripts, struct is not.
-- Counter   c.key, c.interval (us), c.size (span / interval + 1), c.ttl (ms, begins
--           anew with each charge), c.nonce (a life that was never used), c.now (us).
-- Windows   are numbers of whole buckets before the newest, 0 to size - 1.
-- Integers  are exact: Go checked that none in ARGV is above 2^53, fits keeps the
--           totals there.

-- put writes n words to the ring, the first that of bucket x.
local function put(c, x, n, words)
  local from = x % c.size
  local fit = math.min(n, c.size - from)
  call('SETRANGE', c.key, ring_at + 7 * from, sub(words, 1, 7 * fit))
  if fit < n then call('SETRANGE', c.key, ring_at, sub(words, 7 * fit + 1)) end
end

-- began returns the total as bucket x began; the one after the newest begins with all
-- that there is. Those after c.was began in this call, with c.base. Of the others it
-- remembers the last one, or all if wait has read them.
local function began(c, x)
  if x > c.epoch then return c.total end
  if x > c.was then return c.base end
  if x == c.last then return c.value end
  local at, value = 7 * (x % c.size), nil
  if c.ring then
    value = decode(c.ring, at)
  else
    value = decode(call('GETRANGE', c.key, ring_at + at, ring_at + at + 6), 0)
  end
  c.last, c.value = x, value
  return value
end

-- wait returns the us to the end of the bucket after which the window begins with at
-- least need charged before it. What this call charged is in the newest bucket.
local function wait(c, window, need)
  local low, high = 0, window
  if c.charged and need == c.total then
    low = window
  elseif c.size <= 512 and not c.ring then -- one read instead of up to ten
    c.ring = call('GETRANGE', c.key, ring_at, ring_at + 7 * c.size - 1)
  end
  while low < high do
    local middle = floor((low + high) / 2)
    if began(c, c.epoch - window + 1 + middle) >= need then high = middle else low = middle + 1 end
  end
  return (c.epoch + 1 + low) * c.interval - c.now
end

-- lower takes n off the totals as bucket x and all after it began.
local function lower(c, x, n)
  local words = {}
  for i = x, c.epoch do words[#words + 1] = encode(began(c, i) - n) end
  if #words > 0 then put(c, x, #words, table.concat(words)) end
  c.total = c.total - n
  c.dirty, c.was, c.last, c.ring = true, c.epoch, nil, nil
end

local function fresh(c)
  c.new, c.epoch, c.total, c.was, c.base = true, floor(c.now / c.interval), 0, -1, 0
  c.life, c.nonce = c.nonce, c.nonce + 1
end

local buckets = {
  -- load reads the counter and begins its buckets up to now's. It returns an error if it
  -- cannot, such as that the key is something else's.
  load = function(c)
    local s = known_head or redis.pcall('GETRANGE', c.key, 0, ring_at - 1)
    if type(s) == 'table' then return s end
    if s == '' then fresh(c) return end
    if #s < ring_at or sub(s, 1, 4) ~= mark then return redis.error_reply('WRONGTYPE no counter') end
    local epoch, total, newest = decode(s, epoch_at), decode(s, total_at), floor(c.now / c.interval)
    c.life, c.epoch, c.total, c.was, c.base = decode(s, 4), epoch, total, epoch, total
    c.last, c.value = known_bucket, known_began
    if newest > epoch then
      local steps = math.min(newest - epoch, c.size)
      put(c, newest - steps + 1, steps, string.rep(encode(total), steps))
      c.epoch, c.dirty = newest, true
    end
  end,

  -- fits tells whether n more units can be counted at all.
  fits = function(c, n)
    return n <= most - c.total or n <= most - (c.total - began(c, c.epoch - c.size + 1))
  end,

  count = function(c, window) return c.total - began(c, c.epoch - window) end,

  -- check says what a take of n gets: 1 or 0, what remains, us to retry, us to reset.
  check = function(c, limit, window, n)
    if limit == 0 then return 1, 0, 0, 0 end
    local used = c.total - began(c, c.epoch - window)
    local remaining = math.max(0, limit - used)
    local reset = used > 0 and wait(c, window, c.total) or 0
    if n <= remaining then return 1, remaining, 0, reset end
    return 0, remaining, wait(c, window, c.total + n - limit), reset
  end,

  -- charge counts n units, which fit, and returns where.
  charge = function(c, n)
    if n > most - c.total then
      local oldest = c.epoch - c.size + 1
      lower(c, oldest, began(c, oldest))
    end
    c.total, c.charged = c.total + n, true
    return c.epoch
  end,

  -- refund takes n units out of bucket x, if they are still kept.
  refund = function(c, n, x, life)
    if n <= 0 or c.new or life ~= c.life or x > c.epoch or x <= c.epoch - c.size then return false end
    if began(c, x + 1) - began(c, x) < n then return false end
    lower(c, x + 1, n)
    return true
  end,

  reset = function(c)
    call('DEL', c.key)
    c.charged, c.dirty, c.last, c.ring = nil, nil, nil, nil
    fresh(c)
  end,

  -- save writes what changed and leaves no key without a TTL.
  save = function(c)
    if not c.new then
      if c.dirty then
        call('SETRANGE', c.key, epoch_at, encode(c.epoch) .. encode(c.total))
      elseif c.charged then
        call('SETRANGE', c.key, total_at, encode(c.total))
      end
      if c.charged or call('PTTL', c.key) < 0 then call('PEXPIRE', c.key, c.ttl) end
    elseif c.charged then
      local head = mark .. encode(c.life) .. encode(c.epoch) .. encode(c.total)
      call('SET', c.key, head .. string.rep('\0', 7 * c.size), 'PX', c.ttl)
    end
  end,
}
