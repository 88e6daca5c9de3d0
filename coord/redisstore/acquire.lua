-- Gives a lease.
--
-- KEYS    the user
-- ARGV    ID, name; in µs: lifetime, lifetime with all renewals, time between the beginnings
--         of two leases, time for which the user is remembered after the lease
-- Result  {1, number}; or {0, number, µs until the lease can be had, µs until it can be had
--         if it is released now, name of the holder, since, until}, of which the last three
--         are '', 0, 0 if there is no holder
-- Clock   the server's
-- Atomic  because between the look and the write another caller could get it

local id, name, life, most = ARGV[1], ARGV[2], number(ARGV[3]), number(ARGV[4])
local interval, remember = number(ARGV[5]), number(ARGV[6])
local l, wrong = read()
if wrong then return wrong end
if l then
  local soonest = math.max(0, l.since + interval - now)
  if held(l) then return {0, l.number, math.max(soonest, l.ends - now), soonest, l.name, l.since, l.ends} end
  if soonest > 0 then return {0, l.number, soonest, soonest, '', 0, 0} end
end
local given = {number = math.max(now, l and l.number + 1 or 0), since = now}
call('HSET', key, 'number', digits(given.number), 'since', digits(now), 'grant', id, 'name', name,
  'until', digits(now + life), 'latest', digits(now + most))
keep(given, now + life, interval, remember)
return {1, given.number}
