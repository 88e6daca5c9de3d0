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
-- Expiry    of the key begins anew with each charge.

-- Rules     x is the length of a bucket (us), y the size of the ring, z the window that
--           the limit is over.

-- A take that passes and leaves something, a count, or an add without a limit, of a
-- counter that was charged in this bucket. Numbers that go to Redis are strings: to format
-- one costs as much as a call.
quick.buckets = function(r, name, kind, n, over)
  local limit, now = r.limit, r.now
  local window = kind == 'take' and r.z or (kind == 'count' or kind == 'add' and limit == 0) and number(over)
  if not window then return false end
  local s = pcall('GETRANGE', name, '0', '24')
  if type(s) ~= 'string' then return false end
  if #s < 25 or sub(s, 1, 4) ~= 'lrb1' then return false, s end
  local epoch, total, interval = decode(s, 11), decode(s, 18), r.x
  if now >= (epoch + 1) * interval then return false, s end
  local bucket = epoch - window
  if bucket ~= r.bucket then
    local at = 25 + 7 * (bucket % r.y)
    r.bucket, r.first, r.last = bucket, format('%d', at), format('%d', at + 6)
  end
  local began = decode(call('GETRANGE', name, r.first, r.last), 0)
  local used = total - began
  if kind == 'count' then
    if call('PTTL', name) < 0 then call('PEXPIRE', name, r.life) end
    answer(1, 0, 0, 0, used, 0, 0)
    return true
  end
  n = number(n)
  local remaining = limit - used - n
  if n > most - total or kind == 'take' and remaining <= 0 then return false, s, bucket, began end
  call('SETRANGE', name, '18', encode(total + n))
  call('PEXPIRE', name, r.life)
  if kind == 'add' then
    answer(1, 0, 0, 0, used + n, epoch, decode(s, 4))
  else
    answer(1, remaining, 0, (epoch + 1 + window) * interval - now, 0, epoch, decode(s, 4))
  end
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
    c.life, seed = seed, seed + 1
  end

  return {
    -- longer takes note of another rule's TTL.
    longer = function(c, r) c.ttl = math.max(c.ttl, r.ttl) end,

    -- load reads the counter and begins its buckets up to now's. It returns false if the key
    -- is something else's.
    load = function(c, r, read)
      c.interval, c.size, c.ttl = r.x, r.y, r.ttl
      local s = read and read[1] or pcall('GETRANGE', c.key, 0, ring_at - 1)
      if type(s) == 'table' then return false end
      if s == '' then fresh(c) return true end
      if #s < ring_at or sub(s, 1, 4) ~= mark then return false end
      local epoch, total, newest = decode(s, epoch_at), decode(s, total_at), floor(c.now / c.interval)
      c.life, c.epoch, c.total, c.was, c.base = decode(s, 4), epoch, total, epoch, total
      if read then c.last, c.value = read[2], read[3] end
      if newest > epoch then
        local steps = math.min(newest - epoch, c.size)
        put(c, newest - steps + 1, steps, string.rep(encode(total), steps))
        c.epoch, c.dirty = newest, true
      end
      return true
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
end
