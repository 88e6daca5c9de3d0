-- Grants a lease.
--
-- KEYS    the user
-- ARGV    ID, name; in µs: lifetime, time between the beginnings of two leases, time for which the user is kept after the
--         lease
-- Result  if the lease was granted: {1, number}
--         if not: {0, µs until the lease is free, µs until it is free if it is released now, name of the holder, 1 if there
--         is a holder and otherwise 0}
-- Clock   the server's
-- Atomic  because between the check and the write another caller could acquire the lease

local id, name, lifetime, interval, keep_for = ARGV[1], ARGV[2], number(ARGV[3]), number(ARGV[4]), number(ARGV[5])
if l then
  local soonest = math.max(0, math.min(l.since, now) + interval - now) -- the clock may have gone back
  if held(l) then return {0, math.max(soonest, l.ends - now), soonest, l.name, 1} end
  if soonest > 0 then return {0, soonest, soonest, '', 0} end
end
local granted = {number = math.max(now, l and l.number + 1 or 0), since = now}
call('HSET', key, 'number', digits(granted.number), 'since', digits(now), 'grant', id, 'name', name,
  'until', digits(now + lifetime))
keep(granted, now + lifetime, interval, keep_for)
return {1, granted.number}
