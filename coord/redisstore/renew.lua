-- Extends a lease.
--
-- KEYS    the user
-- ARGV    ID; in µs: lifetime, time between the beginnings of two leases, time for which the user
--         is kept after the lease
-- Result  {1, µs that it lasts from now}; {2, the same} if it cannot be extended; {0, 0} if the ID
--         does not hold the lease
-- Clock   the server's
-- Atomic  because between the check and the write the lease could end, and another caller could
--         acquire it

local id, lifetime, interval, keep_for = ARGV[1], number(ARGV[2]), number(ARGV[3]), number(ARGV[4])
if not held(l) or l.grant ~= id then return {0, 0} end
local ends = math.min(now + lifetime, l.latest)
if ends <= l.ends then return {2, l.ends - now} end
call('HSET', key, 'until', digits(ends))
keep(l, ends, interval, keep_for)
return {1, ends - now}
