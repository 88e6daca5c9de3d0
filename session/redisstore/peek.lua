-- Returns a session of a user, and does not count that as use.
--
-- KEYS     the session
-- ARGV     idle limit, absolute limit, in µs
--          user to whom it must be bound
-- Result   as of load.lua; {0} also if it is not the user's, or the key holds something else
-- Clock    the server's
-- Atomic   as one command; it only drops what is over

local s, _, fields = readAll()
s = alive(s, number(ARGV[1]), number(ARGV[2]))
if not s or s.user ~= ARGV[3] then return {0} end
return {s.created, s.touched, 0, s.user, fields}
