-- Removes a session that has a given digest or user.
--
-- KEYS    the session
-- ARGV    digest that it must have, or empty
--         user to whom it must be bound if there is no digest
-- Result  {1, user or ''} if it was removed, {0, ''} if it does not exist, {-1, ''} if it has another digest or user
-- Clock   none
-- Atomic  because another caller could replace the digest or the user between the check and the removal

local s, wrong = read()
if wrong then return ARGV[1] ~= '' and wrong or {-1, ''} end
if not s then return {0, ''} end
if ARGV[1] ~= '' and s.digest ~= ARGV[1] or ARGV[1] == '' and s.user ~= ARGV[2] then return {-1, ''} end
call('UNLINK', key)
return {1, s.user or ''}
