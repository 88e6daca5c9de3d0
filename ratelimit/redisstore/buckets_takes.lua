-- buckets_takes: lists of takes of buckets; what their counters are, buckets.lua says.

takes = function(r)
  local limit, now, interval, size, window = r.limit, r.now, r.x, r.y, r.z
  local epoch, length = floor(now / interval), 25 + 7 * r.y
  local began, read = 25 + 7 * ((epoch - window) % size), {}
  local reset = (epoch + 1 + window) * interval - now
  local usual, counters = encode(reset), nil
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
    if call('PTTL', name) < 0 then call('PEXPIRE', name, r.life) end
    put_all(0, math.max(0, limit - used), 0, wait(s, total + n - limit), wait(s, total), 0, 0)
  end

  -- charge charges what passed of the takes, and says until when the next wait.
  local function charge(name, s, n, times, passed, total, used)
    local remaining = limit - used
    call('SETRANGE', name, '18', encode(total))
    extend(name, r.ttl, interval)
    put(passed == 1 and one_passed or four(passed), encode(remaining))
    if remaining > 0 and passed == times then
      put(zeros, usual)
    else
      put(encode(remaining > 0 and 0 or wait(s, total + 1 - limit)),
        encode(passed < times and wait(s, total + n - limit) or 0) .. usual)
    end
    put(sub(s, 12, 18), sub(s, 5, 11))
  end

  -- quickly does the takes of a counter that has reached this bucket, if it can.
  local function quickly(name, s, n, times)
    if type(s) ~= 'string' or #s ~= length or sub(s, 1, 4) ~= 'lrb1' then return false end
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
  end

  for i = 1, r.keys do
    local name, n, times, s = KEYS[key + i], 1, 1, nil
    if r.mode > 0 then n, times = numbers(r, i) end
    if counters then
      s = counters[i]
      if read[name] then s = call('GET', name) end -- it may have changed
      read[name] = true
    end
    if not quickly(name, s, n, times) then slowly(r, i, n, times) end
  end
end
