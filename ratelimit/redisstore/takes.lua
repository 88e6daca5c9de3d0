-- takes: the last part of a script that runs takes by one rule, of any number of keys. Go declares the
-- algorithm before it, as the local variable a.
--
-- KEYS    the counters
-- ARGV    now, the rule's numbers, and then for each key n and the number of equal takes; these are
--         left out if all of them are 1
-- Reply   now, and then for each key the number of takes that passed, which are the first ones, and the
--         algorithm's report on the counter after them. It is -1 and zeros if the key holds a foreign
--         value, and -2 and zeros if the counter would exceed 2^53
-- Clock   Redis TIME, unless a test sends its own
-- Atomic: Redis runs nothing else between read and charge

local r, numbers, i, entry = a.rule(2), a.size, 0, 0

local function take_rest()
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
    a.report(key, r, passed > 0 and 1 or 0, passed < times and n or 0, s, t, u)
  end
end

repeat
  local done, err = pcall(take_rest)
  if not done then
    if err ~= foreign and err ~= overflow then return refusal(err) end
    out[entry + 1] = err == foreign and -1 or -2
    o = entry + 1 + a.width
    for i = entry + 2, o do out[i] = 0 end
  end
until done
return out
