-- gcra_takes: lists of takes of GCRAs; what their counters are, gcra.lua says.
--
-- Reply   for each key the time, how many takes passed, and the counter as it is then

takes = function(r)
  local per, limit, now, full, mode = r.per, r.limit, r.now, r.x * r.per, r.mode
  local time = encode(now)
  local mark, one, none, lasts, written = 'lrg1' .. time, time .. one_passed, time .. none_passed, {}, {}
  local counters = call('MGET', unpack(KEYS, key + 1, key + r.keys))

  -- write keeps a counter whose level is to fall from lev at a time, until it is 0.
  local function write(name, value, lev, from)
    local ms = math.max(1, math.ceil((from - now + lev / limit) / 1000))
    if not lasts[ms] then lasts[ms] = digits(ms) end
    call('SET', name, value, 'PX', lasts[ms])
  end

  for i = 1, r.keys do
    local name, n, times = KEYS[key + i], 1, 1
    local s, from, level = written[name] or counters[i], now, 0
    if mode > 0 then n, times = numbers(r, i) end
    if s then
      from, level = pair(s, 5)
      if not from or #s ~= 18 or sub(s, 1, 4) ~= 'lrg1' then from = nil end
    elseif call('EXISTS', name) > 0 then
      from = nil
    end
    if not from then
      put(time .. foreign_passed, string.rep('\0', 18))
    else
      local lev, cost, passed = level, n * per, 1
      if from < now then lev = math.max(0, level - (now - from) * limit) end
      if times > 1 then passed = math.min(times, quotient(math.max(0, full - lev), cost)) end
      if passed > 0 and passed * cost <= full - lev then
        lev = lev + passed * cost
        if from <= now then
          s, from = mark .. encode(lev), now
        else
          s = sub(s, 1, 11) .. encode(lev) -- the clock went back
        end
        write(name, s, lev, from)
        written[name] = s
        put(passed == 1 and one or time .. four(passed), s)
      else
        if call('PTTL', name) < 0 then write(name, s, level, from) end
        put(none, s)
      end
    end
  end
end
