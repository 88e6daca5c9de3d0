-- log_takes: lists of takes of logs; what their counters are, log.lua says.

takes = function(r)
  local now, per, stream = r.now, r.per, r.algorithm == 'stream'
  local cut, time, lasts, at_once = digits(now - per), digits(now), digits(ceil(per, 1000)), encode(now)
  local open, since, reset = '(' .. cut, digits(math.max(now - per, -1) + 1), zeros .. encode(per)

  -- ends returns the newest event's words and time, and the words of the first in the window.
  -- Streams have one event for each time.
  local function ends(name)
    if stream then
      local reply = pcall('XREVRANGE', name, '+', '-', 'COUNT', '1')
      if reply.err or not reply[1] and call('EXISTS', name) > 0 then error(foreign) end
      if not reply[1] then return nil end
      if reply[1][2][1] ~= 'e' then error(foreign) end
      local first = call('XRANGE', name, since, '+', 'COUNT', '1')[1]
      return reply[1][2][2], number(string.match(reply[1][1], '^%d+')), first and first[2][2]
    end
    local reply = pcall('ZRANGE', name, '-1', '-1', 'WITHSCORES')
    if reply.err then error(foreign) end
    local last = reply[1]
    return last, number(reply[2] or 0), last and call('ZRANGEBYSCORE', name, open, '+inf', 'LIMIT', '0', '1')[1]
  end

  -- deny denies n, and all after it, if it only waits for the first event in the window to
  -- leave it, and the newest one leaves last. It says whether it did.
  local function deny(name, n, first, last, at)
    local sum, past = decode(last, 7), decode(first, 7)
    if past < sum + n - r.limit or decode(last, 0) == 0 then return false end
    local left = r.limit - sum + past - decode(first, 0)
    local leaves
    if stream then
      leaves = string.match(call('XRANGE', name, since, '+', 'COUNT', '1')[1][1], '^%d+')
    else
      leaves = call('ZSCORE', name, first)
    end
    if call('PTTL', name) < 0 then call('PEXPIRE', name, digits(ceil(at + per - now, 1000))) end
    put_all(0, math.max(0, left), 0, leaves + per - now, at + per - now, 0, 0)
    return true
  end

  -- If all pass and leave something, or none does. All that pass are one event.
  each(r, function(_, name, n, times)
    local last, at, first = ends(name)
    if last and (#last ~= 21 or at > now or at % 1 ~= 0 or stream and at == now) then
      return false
    end
    local used, units, sum, life = 0, n * times, 0, nil
    if last and not pair(last, 8) then error(foreign) end
    if first then
      if #first ~= 21 then error(foreign) end
      sum, life = decode(last, 7), sub(last, 15, 21)
      used = sum - decode(first, 7) + decode(first, 0)
    end
    local remaining = r.limit - used - units
    if first and n > r.limit - used then return deny(name, n, first, last, at) end
    if remaining <= 0 or units > most - sum then return false end
    if not first then
      life = encode(seed)
      seed = seed + 1
    end
    local total = encode(sum + units) .. life
    if stream then
      append(name, 'MINID', '~', since, time .. '-0', 'e', encode(units) .. total)
    else
      local same = first and at == now
      call('ZADD', name, time, encode(same and decode(last, 0) + units or units) .. total)
      if same then call('ZREM', name, last) end
      call('ZREMRANGEBYSCORE', name, '-inf', cut)
    end
    call('PEXPIRE', name, lasts)
    put(times == 1 and one_passed or four(times), encode(remaining))
    put(reset, at_once)
    put(life, '')
    return true
  end)
end
