-- Prolongs a lease.
--
-- KEYS    the user
-- ARGV    ID; in µs: lifetime, time between the beginnings of two leases, time for which the
--         user is remembered after the lease
-- Result  {1, µs that it lasts from now}; {2, the same} if that cannot be made longer;
--         {0, 0} if it is not the caller's
-- Clock   the server's
-- Atomic  because between the look at the ID and the write the lease could end, and another
--         caller could get it

local id, life, interval, remember = ARGV[1], number(ARGV[2]), number(ARGV[3]), number(ARGV[4])
local l, wrong = read()
if wrong then return wrong end
if not held(l) or l.grant ~= id then return {0, 0} end
local ends = math.min(now + life, l.latest)
if ends <= l.ends then return {2, l.ends - now} end
call('HSET', key, 'until', digits(ends))
keep(l, ends, interval, remember)
return {1, ends - now}
