-- Issues a token.
--
-- KEYS    the token
-- ARGV    metadata; µs for which the token can be used; µs for which it is remembered after that
-- Result  {1} if it was issued; {0} if the token exists, which stays unchanged
-- Clock   the server's
-- Atomic  because between the check and the write another caller could issue the token and use it

if t then return {0} end
local expires = now + number(ARGV[2])
local forgotten = expires + number(ARGV[3])
call('HSET', key, 'issued', digits(now), 'expires', digits(expires), 'forgotten', digits(forgotten), 'meta', ARGV[1])
expire_at(forgotten)
return {1}
