-- Reads who holds a lease.
--
-- KEYS    the user
-- ARGV    nothing
-- Result  {1, number, name, since, until}; {0} if there is no holder
-- Clock   the server's
-- Atomic  as one read

local l, wrong = read()
if wrong then return wrong end
if not held(l) then return {0} end
return {1, l.number, l.name, l.since, l.ends}
