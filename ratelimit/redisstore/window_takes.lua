-- window_takes: a script of lists of takes of windows; what their counters are, window.lua
-- says, and lists.lua, what lists are. It has no functions of its own, which would cost a
-- list of one key as much as the rest.
--
-- Reply   for each key the time, how many takes passed, and the counter as it is then

local out, o, server = {}, 0, nil
while at <= #ARGV do
  local now, limit, per = number(ARGV[at + 2]), number(ARGV[at + 4]), number(ARGV[at + 5])
  at = at + number(ARGV[at]) + 1
  local keys, mode = number(ARGV[at]), number(ARGV[at + 1])
  if now == 0 then
    if not server then
      local t = call('TIME')
      server = t[1] * 1000000 + t[2]
    end
    now = server
  end
  local time, written, fresh, lasts = encode(now), {}, nil, nil
  local one, none = time .. '\1\0\0\0', time .. '\0\0\0\0'
  local counters = call('MGET', unpack(KEYS, key + 1, key + keys))
  for i = 1, keys do
    local name, n, times = KEYS[key + i], 1, 1
    local s, ends, used = written[name] or counters[i], now, 0
    if mode > 0 then
      n = number(ARGV[at + 2 + mode * (i - 1)])
      if mode > 1 then times = number(ARGV[at + 3 + mode * (i - 1)]) end
    end
    if s then
      ends, used = pair(s, 12)
      if #s ~= 25 or sub(s, 1, 4) ~= 'lrw1' then ends = nil end
    elseif call('EXISTS', name) > 0 then
      ends = nil
    end
    o = o + 2
    if not ends then
      out[o - 1], out[o] = time .. '\255\255\255\255', '1234567890123456789012345'
    else
      local passed, begun = 1, now < ends
      if not begun then ends, used = now + per, 0 end
      if times > 1 then
        local free = math.max(0, limit - used)
        passed = math.min(times, (free - fmod(free, n)) / n)
      end
      if passed == 0 or passed * n > limit - used then
        out[o - 1], out[o] = none, s
        if call('PTTL', name) < 0 then
          call('PEXPIRE', name, format('%.0f', math.max(1, math.ceil((ends - now) / 1000))))
        end
      else
        local units = encode(used + passed * n)
        if begun and call('PTTL', name) > 0 then
          call('SETRANGE', name, '18', units)
          s = sub(s, 1, 18) .. units
        elseif begun then
          s = sub(s, 1, 18) .. units
          call('SET', name, s, 'PX', format('%.0f', math.max(1, math.ceil((ends - now) / 1000))))
        else
          if not fresh then fresh, lasts = encode(ends), format('%.0f', math.ceil(per / 1000)) end
          if s then
            s = sub(s, 1, 11) .. fresh .. units
          else
            s = 'lrw1' .. encode(seed) .. fresh .. units
            seed = seed + 1
          end
          call('SET', name, s, 'PX', lasts)
        end
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
