-- Ends a lease before its time.
--
-- KEYS    the user
-- ARGV    ID; in µs: time between the beginnings of two leases, time for which the user is kept
-- Result  {1} done, {0} if the ID does not hold the lease
-- Clock   the server's
-- Atomic  because between the check and the write another caller could acquire the lease

if not held(l) or l.grant ~= ARGV[1] then return {0} end
call('HDEL', key, 'grant', 'name', 'until')
keep(l, now, number(ARGV[2]), number(ARGV[3]))
return {1}
