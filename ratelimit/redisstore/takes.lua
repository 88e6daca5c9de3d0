-- takes: the end of a script that does takes by one rule, of any number of keys. It has its own
-- name for the algorithm, which Go puts before it: a.
--
-- KEYS   the counters
-- ARGV   now, the rule, and then for each key n and how many equal takes there are, or nothing if
--        all of that is 1
-- Reply  now, and then for each key how many of the takes passed, and what the algorithm shows of
--        the counter as it is then: the first so many passed. If the key is something else's,
--        -1 and zeros; if the counter would leave 2^53, -2 and zeros
-- Atomic because nothing else runs between read and charge

local r, numbers, i, entry = a.rule(2), a.size, 0, 0

local function rest()
  while i < #KEYS do
    i = i + 1
    entry = o
    local key, n, times = KEYS[i], number(ARGV[numbers + 2 * i] or 1), number(ARGV[numbers + 2 * i + 1] or 1)
    local room, s, t, u = a.read(key, r)
    local passed = 0
    if room >= n then
      passed = times
      if times * n > room then passed = (room - fmod(room, n)) / n end
      s, t, u = a.charge(key, r, passed * n, 0, s, t, u)
    end
    o = o + 1
    out[o] = passed
    a.show(key, r, passed > 0 and 1 or 0, passed < times and n or 0, s, t, u)
  end
end

repeat
  local done, err = pcall(rest)
  if not done then
    if err ~= foreign and err ~= overflow then return refusal(err) end
    out[entry + 1] = err == foreign and -1 or -2
    o = entry + 1 + a.width
    for i = entry + 2, o do out[i] = 0 end
  end
until done
return out
