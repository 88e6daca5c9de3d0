-- Grants a lease.
--
-- KEYS    the user
-- ARGV    ID, name; in µs: lifetime, maximum lifetime with all renewals, time between the beginnings of two leases, time
--         for which the user is kept after the lease
-- Result  {1, number}; or {0, number, µs until the lease is free, µs until it is free if it is released now, name of the
--         holder, since, until}; the last three are '', 0, 0 if there is no holder
-- Clock   the server's
-- Atomic  because between the check and the write another caller could acquire the lease

local id, name, lifetime, max_lifetime = ARGV[1], ARGV[2], number(ARGV[3]), number(ARGV[4])
local interval, keep_for = number(ARGV[5]), number(ARGV[6])
if l then
  local soonest = math.max(0, math.min(l.since, now) + interval - now) -- the clock may have gone back
  if held(l) then return {0, l.number, math.max(soonest, l.ends - now), soonest, l.name, l.since, l.ends} end
  if soonest > 0 then return {0, l.number, soonest, soonest, '', 0, 0} end
end
local granted = {number = math.max(now, l and l.number + 1 or 0), since = now}
call('HSET', key, 'number', digits(granted.number), 'since', digits(now), 'grant', id, 'name', name,
  'until', digits(now + lifetime), 'latest', digits(now + max_lifetime))
keep(granted, now + lifetime, interval, keep_for)
return {1, granted.number}
