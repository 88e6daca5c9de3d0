-- Removes a session of a user.
--
-- KEYS     the session
-- ARGV     user to whom it must be bound
-- Result   {1} if it was removed, {0} if there is none, or it is not the user's and stays
-- Clock    none
-- Atomic   because another caller could bind the session to another user between the
--          check and the removal

local s = read()
if not s or s.user ~= ARGV[1] then return {0} end
call('UNLINK', key)
return {1}
