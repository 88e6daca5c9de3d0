-- Removes a session.
--
-- KEYS     the session
-- ARGV     digest that it must have
-- Result   {1, user} if it was removed and was bound to a user, {1} if it was nobody's or
--          was not there, {0} if it has another digest and stays
-- Clock    none
-- Atomic   because another caller could rotate the digest between the check
--          and the removal

local s, wrong = read()
if wrong then return wrong end
if not s then return {1} end
if s.digest ~= ARGV[1] then return {0} end
call('UNLINK', key)
return {1, s.user or nil}
