-- Gives leases.
--
-- Calls   ID, name; in µs: lifetime, lifetime with all renewals, time between the beginnings
--         of two leases, time for which the user is remembered after the lease
-- Result  of each: 1, number; or 0, number, µs until the lease can be had, µs until it can
--         be had if it is released now, name of the holder, since, until; the last three
--         are '', 0, 0 if nobody holds it. Always seven elements.
-- Clock   the server's
-- Atomic  because between the look and the write another caller could get it

local function acquire(key, id, name, life, most, interval, remember)
  local l, wrong = read(key)
  if wrong then return wrong end
  if l then
    local soonest = math.max(0, l.since + interval - now)
    if held(l) then return 0, l.number, math.max(soonest, l.ends - now), soonest, l.name, l.since, l.ends end
    if soonest > 0 then return 0, l.number, soonest, soonest end
  end
  local given = {number = math.max(now, l and l.number + 1 or 0), since = now}
  call('HSET', key, 'number', digits(given.number), 'since', digits(now), 'grant', id, 'name', name,
    'until', digits(now + life), 'latest', digits(now + most))
  keep(key, given, now + life, interval, remember)
  return 1, given.number
end

for i = 1, #KEYS do
  local verdict, n, wait, soonest, name, since, ends = acquire(KEYS[i], ARGV[at], ARGV[at + 1],
    number(ARGV[at + 2]), number(ARGV[at + 3]), number(ARGV[at + 4]), number(ARGV[at + 5]))
  local o = 7 * i - 7
  out[o + 1], out[o + 2], out[o + 3], out[o + 4] = verdict, n or 0, wait or 0, soonest or 0
  out[o + 5], out[o + 6], out[o + 7] = name or '', since or 0, ends or 0
  at = at + 6
end
return out
