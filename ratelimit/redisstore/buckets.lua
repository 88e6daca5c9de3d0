-- buckets: a counter in time buckets; in Go it is bucketPair, with the same answers.
--
-- Key       a string, mark and then words:
--             life   which life of the counter this is
--             epoch  number of the newest bucket, time / interval; it never goes back
--             total  units charged so far
--             ring   size words: the totals as the newest buckets began, that of
--                    bucket x at x % size
--           so the units of a bucket and all after it are one subtraction, and a gap
--           is filled by one or two writes.
-- Windows   are numbers of whole buckets before the newest, 0 to size - 1.
-- Expiry    of the key begins anew with the charges, once in a bucket.
-- Rules     x is the length of a bucket (us), y the size of the ring, z the window that
--           the limit is over.

-- extend lets a key live for a TTL of ms from now, or less than a bucket shorter if it
-- already does: a TTL costs more to write than to read, and goes to every replica.
local function extend(name, ttl, interval)
  if call('PTTL', name) < ttl - floor(interval / 1000) then call('PEXPIRE', name, digits(ttl)) end
end

-- A count, or an add without a limit, of a counter that has reached this bucket. Numbers
-- that go to Redis are strings: to format one costs as much as a call.
quick.buckets = function(r, name, kind, n, over)
  if kind ~= 'count' and not (kind == 'add' and r.limit == 0) then return false end
  local now, window = r.now, number(over)
  local s = pcall('GETRANGE', name, '0', '24')
  if type(s) ~= 'string' then return false end
  if #s < 25 or sub(s, 1, 4) ~= 'lrb1' then return false, s end
  local epoch, total, interval = decode(s, 11), decode(s, 18), r.x
  if now >= (epoch + 1) * interval or now < epoch * interval then return false, s end
  local bucket = epoch - window
  if bucket ~= r.bucket then
    local at = 25 + 7 * (bucket % r.y)
    r.bucket, r.first, r.last = bucket, format('%d', at), format('%d', at + 6)
  end
  local began = decode(call('GETRANGE', name, r.first, r.last), 0)
  local used = total - began
  if kind == 'count' then
    if call('STRLEN', name) ~= 25 + 7 * r.y then error(foreign) end
    if call('PTTL', name) < 0 then call('PEXPIRE', name, r.life) end
    answer(1, 0, 0, 0, used, 0, 0)
    return true
  end
  n = number(n)
  if n > most - total then return false, s, bucket, began end
  if call('SETRANGE', name, '18', encode(total + n)) ~= 25 + 7 * r.y then
    call('SETRANGE', name, '18', sub(s, 19, 25)) -- it is as it was
    error(foreign)
  end
  extend(name, r.ttl, interval)
  answer(1, 0, 0, 0, used + n, epoch, decode(s, 4))
  return true
end

make.buckets = function()
  local mark, epoch_at, total_at, ring_at = 'lrb1', 11, 18, 25

  -- put writes n words to the ring, the first that of bucket x.
  local function put(c, x, n, words)
    local from = x % c.size
    local fit = math.min(n, c.size - from)
    call('SETRANGE', c.key, ring_at + 7 * from, sub(words, 1, 7 * fit))
    if fit < n then call('SETRANGE', c.key, ring_at, sub(words, 7 * fit + 1)) end
  end

  -- began returns the total as bucket x began; the one after the newest begins with all
  -- that there is. Those after c.was began in this call, with c.base. Of the others it
  -- remembers what it has read.
  local function began(c, x)
    if x > c.epoch then return c.total end
    if x > c.was then return c.base end
    local at, value = 7 * (x % c.size), c.seen[x]
    if c.ring then return decode(c.ring, at) end
    if not value then
      value = decode(call('GETRANGE', c.key, format('%d', ring_at + at), format('%d', ring_at + at + 6)), 0)
      c.seen[x] = value
    end
    return value
  end

  -- fill begins the buckets that the time has reached.
  local function fill(c)
    local steps = math.min(c.epoch - c.was, c.size)
    if steps > 0 and not c.new then
      put(c, c.epoch - steps + 1, steps, string.rep(encode(c.base), steps))
      c.was, c.ring, c.dirty = c.epoch, nil, true
    end
  end

  -- wait returns the us to the end of the bucket after which the window begins with at
  -- least need charged before it.
  local function wait(c, window, need)
    local low, high = 0, window
    if began(c, c.epoch) < need then -- it is the newest, in which this call charged
      low = window
    elseif c.size <= 512 and not c.ring then -- one read instead of up to ten
      c.ring = call('GETRANGE', c.key, '25', '-1')
    end
    while low < high do
      local middle = floor((low + high) / 2)
      if began(c, c.epoch - window + 1 + middle) >= need then high = middle else low = middle + 1 end
    end
    return (c.epoch + 1 + low) * c.interval - c.now
  end

  -- lower takes n off the totals as bucket x and all after it began.
  local function lower(c, x, n)
    fill(c)
    local words = {}
    for i = x, c.epoch do words[#words + 1] = encode(began(c, i) - n) end
    if #words > 0 then put(c, x, #words, table.concat(words)) end
    c.total = c.total - n
    c.dirty, c.seen, c.ring = true, {}, nil
  end

  local function fresh(c)
    c.new, c.epoch, c.total, c.was, c.base = true, floor(c.now / c.interval), 0, -math.huge, 0
    c.life, seed = seed, seed + 1
  end

  return {
    -- longer takes note of another rule's TTL.
    longer = function(c, r) c.ttl = math.max(c.ttl, r.ttl) end,

    -- load reads the counter and begins its buckets up to now's.
    load = function(c, r, read)
      c.interval, c.size, c.ttl = r.x, r.y, r.ttl
      local s = read and read[1] or pcall('GETRANGE', c.key, '0', '24')
      if s == '' and call('EXISTS', c.key) == 0 then return fresh(c) end
      if type(s) ~= 'string' or sub(s, 1, 4) ~= mark or call('STRLEN', c.key) ~= ring_at + 7 * c.size then
        error(foreign)
      end
      local epoch, total = decode(s, epoch_at), decode(s, total_at)
      if (epoch + 1) * c.interval > most then error(foreign) end
      c.life, c.epoch, c.total, c.was, c.base = decode(s, 4), epoch, total, epoch, total
      c.seen = {}
      if read and read[2] then c.seen[read[2]] = read[3] end
      c.epoch = math.max(epoch, floor(c.now / c.interval))
    end,

    -- fits tells whether n more units can be counted at all.
    fits = function(c, r, n)
      return n <= most - c.total or n <= most - (c.total - began(c, c.epoch - c.size + 1))
    end,

    -- count returns the units of a window.
    count = function(c, window) return c.total - began(c, c.epoch - window) end,

    -- passes says whether a take of n does.
    passes = function(c, r, n) return c.total - began(c, c.epoch - r.z) + n <= r.limit end,

    -- check says what a take of n gets: 1 or 0, what remains, us to retry, us to reset.
    check = function(c, r, n)
      local limit, window = r.limit, r.z
      if limit == 0 then return 1, 0, 0, 0 end
      local used = c.total - began(c, c.epoch - window)
      local remaining = math.max(0, limit - used)
      local reset = used > 0 and wait(c, window, c.total) or 0
      if n <= remaining then return 1, remaining, 0, reset end
      return 0, remaining, wait(c, window, c.total + n - limit), reset
    end,

    -- charge counts n units, which fit, and returns where.
    charge = function(c, r, n)
      if n > most - c.total then
        local oldest = c.epoch - c.size + 1
        lower(c, oldest, began(c, oldest))
      end
      c.total, c.charged = c.total + n, true
      return c.epoch
    end,

    -- refund takes n units out of bucket x, if they are still kept.
    refund = function(c, r, n, x, life)
      if n <= 0 or c.new or life ~= c.life or x > c.epoch or x <= c.epoch - c.size then return false end
      if began(c, x + 1) - began(c, x) < n then return false end
      lower(c, x + 1, n)
      return true
    end,

    reset = function(c)
      call('DEL', c.key)
      c.charged, c.dirty, c.ring = nil, nil, nil
      fresh(c)
    end,

    -- save writes what changed and leaves no key without a TTL.
    save = function(c)
      -- Longer, if the clock went back: until the newest bucket is out of every window.
      local ttl = math.max(c.ttl, ceil((c.epoch + c.size) * c.interval - c.now, 1000))
      if not c.new then
        fill(c)
        if c.dirty then
          call('SETRANGE', c.key, epoch_at, encode(c.epoch) .. encode(c.total))
        elseif c.charged then
          call('SETRANGE', c.key, total_at, encode(c.total))
        end
        if c.charged then
          extend(c.key, ttl, c.interval)
        elseif call('PTTL', c.key) < 0 then
          call('PEXPIRE', c.key, digits(ttl))
        end
      elseif c.charged then
        local head = mark .. encode(c.life) .. encode(c.epoch) .. encode(c.total)
        call('SET', c.key, head .. string.rep('\0', 7 * c.size), 'PX', digits(ttl))
      end
    end,
  }
end
