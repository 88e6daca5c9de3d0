-- Removes a session.
--
-- KEYS[1]  the session
-- ARGV[1]  digest that it must have
-- Result   1 nothing is there any more, 0 it has another digest and stays
-- Clock    the server's, only to let Redis drop what is over
-- Atomic   because another caller could rotate the digest between the check
--          and the removal

local s, wrong = read(KEYS[1])
if wrong then return wrong end
if not s then return 1 end
if s.digest ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[1])
return 1
