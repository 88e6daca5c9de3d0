-- gcra_takes: a script of lists of takes of GCRAs; what their counters are, gcra.lua says, and
-- lists.lua, what lists are. It has no functions of its own, which would cost a list of one
-- key as much as the rest.
--
-- Reply   for each key the time, how many takes passed, and the counter as it is then

local out, o, server = {}, 0, nil
while at <= #ARGV do
  local now, limit, per, x = number(ARGV[at + 2]), number(ARGV[at + 4]), number(ARGV[at + 5]), number(ARGV[at + 6])
  at = at + number(ARGV[at]) + 1
  local keys, mode = number(ARGV[at]), number(ARGV[at + 1])
  if now == 0 then
    if not server then
      local t = call('TIME')
      server = t[1] * 1000000 + t[2]
    end
    now = server
  end
  local full, time, lasts, written = x * per, encode(now), {}, {}
  local mark, one, none = 'lrg1' .. time, time .. '\1\0\0\0', time .. '\0\0\0\0'
  local counters = call('MGET', unpack(KEYS, key + 1, key + keys))
  for i = 1, keys do
    local name, n, times = KEYS[key + i], 1, 1
    local s, from, level = written[name] or counters[i], now, 0
    if mode > 0 then
      n = number(ARGV[at + 2 + mode * (i - 1)])
      if mode > 1 then times = number(ARGV[at + 3 + mode * (i - 1)]) end
    end
    if s then
      from, level = pair(s, 5)
      if #s ~= 18 or sub(s, 1, 4) ~= 'lrg1' then from = nil end
    elseif call('EXISTS', name) > 0 then
      from = nil
    end
    o = o + 2
    if not from then
      out[o - 1], out[o] = time .. '\255\255\255\255', '123456789012345678'
    else
      local lev, cost, passed = level, n * per, 1
      if from < now then
        lev = level - (now - from) * limit -- not exact below -2^53, but then below 0
        if lev < 0 then lev = 0 end
      end
      if times > 1 then
        local free = math.max(0, full - lev)
        passed = math.min(times, (free - fmod(free, cost)) / cost)
      end
      if passed == 0 or passed * cost > full - lev then
        out[o - 1], out[o] = none, s
        if call('PTTL', name) < 0 then
          call('PEXPIRE', name, format('%.0f', math.max(1, math.ceil((from - now + level / limit) / 1000))))
        end
      else
        lev = lev + passed * cost
        if from <= now then
          s, from = mark .. encode(lev), now
        else
          s = sub(s, 1, 11) .. encode(lev) -- the clock went back
        end
        local ms = math.max(1, math.ceil((from - now + lev / limit) / 1000))
        if not lasts[ms] then lasts[ms] = format('%.0f', ms) end
        call('SET', name, s, 'PX', lasts[ms])
        written[name] = s
        out[o - 1], out[o] = one, s
        if times > 1 then
          out[o - 1] = time .. char(passed % 256, floor(passed / 0x100) % 256, floor(passed / 0x10000) % 256, floor(passed / 0x1000000))
        end
      end
    end
  end
  at, key = at + 2 + mode * keys, key + keys
end
return table.concat(out)
