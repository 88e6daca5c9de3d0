-- window_takes: lists of takes of windows; what their counters are, window.lua says.
--
-- Reply   for each key the time, how many takes passed, and the counter as it is then

takes = function(r)
  local limit, now, mode = r.limit, r.now, r.mode
  local time = encode(now)
  local fresh, one, none, lasts, written = nil, time .. one_passed, time .. none_passed, {}, {}
  local counters = call('MGET', unpack(KEYS, key + 1, key + r.keys))

  -- left returns the ms to the end of a window.
  local function left(ends)
    local ms = math.max(1, math.ceil((ends - now) / 1000))
    if not lasts[ms] then lasts[ms] = digits(ms) end
    return lasts[ms]
  end

  for i = 1, r.keys do
    local name, n, times = KEYS[key + i], 1, 1
    local s, ends, used = written[name] or counters[i], now, 0
    if mode > 0 then n, times = numbers(r, i) end
    if s then
      ends, used = pair(s, 12)
      if not ends or #s ~= 25 or sub(s, 1, 4) ~= 'lrw1' then ends = nil end
    elseif call('EXISTS', name) > 0 then
      ends = nil
    end
    if not ends then
      put(time .. foreign_passed, string.rep('\0', 25))
    else
      local passed, begun = 1, now < ends
      if not begun then ends, used = now + r.per, 0 end
      if times > 1 then passed = math.min(times, quotient(math.max(0, limit - used), n)) end
      if passed > 0 and passed * n <= limit - used then
        used = used + passed * n
        if begun then
          s = sub(s, 1, 18) .. encode(used)
        else
          local life = s and sub(s, 1, 11)
          if not life then
            life = 'lrw1' .. encode(seed)
            seed = seed + 1
          end
          if not fresh then fresh = encode(ends) end
          s = life .. fresh .. encode(used)
        end
        call('SET', name, s, 'PX', left(ends))
        written[name] = s
        put(passed == 1 and one or time .. four(passed), s)
      else
        if call('PTTL', name) < 0 then call('PEXPIRE', name, left(ends)) end
        put(none, s)
      end
    end
  end
end
