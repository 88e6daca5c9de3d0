-- buckets_takes: lists of takes of buckets; what their counters are, buckets.lua says.

takes = function(r)
  local limit, now, interval, size, window = r.limit, r.now, r.x, r.y, r.z
  local epoch, length = floor(now / interval), 25 + 7 * r.y
  local began, read = 25 + 7 * ((epoch - window) % size), {}
  local usual, counters = encode((epoch + 1 + window) * interval - now), nil
  if size <= 512 then counters = call('MGET', unpack(KEYS, key + 1, key + r.keys)) end

  -- wait returns the us to the end of the bucket after which the window begins with at least
  -- need charged before it.
  local function wait(s, need)
    local low, high = 0, window
    if decode(s, 25 + 7 * (epoch % size)) < need then
      low = high
    else
      high = high - 1 -- what was there before the newest bucket is enough
    end
    while low < high do
      local middle = floor((low + high) / 2)
      if decode(s, 25 + 7 * ((epoch - window + 1 + middle) % size)) >= need then
        high = middle
      else
        low = middle + 1
      end
    end
    return (epoch + 1 + low) * interval - now
  end

  -- deny denies n, and all after it.
  local function deny(name, s, n, total, used)
    local retry, whole = wait(s, total + n - limit), wait(s, total)
    if call('PTTL', name) < 0 then call('PEXPIRE', name, r.life) end
    put_all(0, math.max(0, limit - used), 0, retry, whole, 0, 0)
  end

  -- charge charges what passed of the takes, and says until when the next wait.
  local function charge(name, s, n, times, passed, total, used)
    local remaining, waits = limit - used, zeros
    if remaining <= 0 or passed < times then
      waits = encode(remaining > 0 and 0 or wait(s, total + 1 - limit))
        .. encode(passed < times and wait(s, total + n - limit) or 0)
    end
    call('SETRANGE', name, '18', encode(total))
    extend(name, r.ttl, interval)
    put(passed == 1 and one_passed or four(passed), encode(remaining))
    put(waits, usual)
    put(sub(s, 12, 18), sub(s, 5, 11))
  end

  each(r, function(i, name, n, times)
    local s = counters and counters[i]
    if counters then
      if read[name] then s = call('GET', name) end -- it may have changed
      read[name] = true
    end
    if not s or #s ~= length or sub(s, 1, 4) ~= 'lrb1' then return false end
    local newest, total = pair(s, 12)
    if newest ~= epoch then return false end
    local used, passed = total - decode(s, began), 1
    if times > 1 then passed = math.min(times, quotient(math.max(0, limit - used), n)) end
    local units = passed * n
    if units > most - total then return false end
    if passed == 0 or units > limit - used then
      deny(name, s, n, total, used)
    else
      charge(name, s, n, times, passed, total + units, used + units)
    end
    return true
  end)
end
