-- Extends a lease.
--
-- KEYS    the user
-- ARGV    ID; in µs: lifetime, time between the beginnings of two leases, time for which the user is kept after the lease
-- Result  {1} done, {0} if the ID does not hold the lease
-- Clock   the server's
-- Atomic  because between the check and the write the lease could end, and another caller could acquire it

if not held(l) or l.grant ~= ARGV[1] then return {0} end
local ends = math.max(l.ends, now + number(ARGV[2])) -- the clock may have gone back
call('HSET', key, 'until', digits(ends))
keep(l, ends, number(ARGV[3]), number(ARGV[4]))
return {1}
