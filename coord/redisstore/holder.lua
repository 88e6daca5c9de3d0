-- Reads the holder of a lease.
--
-- KEYS    the user
-- Result  {1, number, name, since, until}; {0} if there is no holder
-- Clock   the server's
-- Atomic  as one read

if not held(l) then return {0} end
return {1, l.number, l.name, l.since, l.ends}
