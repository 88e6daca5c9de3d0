-- Makes a token.
--
-- KEYS    the token
-- ARGV    metadata; µs for which it can be used; µs for which it is kept after that
-- Result  {1} if it was made; {0} if there is one, which is as it was
-- Clock   the server's
-- Atomic  because between the look and the write another caller could issue it, and use it

local t, wrong = read()
if wrong then return wrong end
if t then return {0} end
local expires = now + number(ARGV[2])
local forgotten = expires + number(ARGV[3])
call('HSET', key, 'issued', digits(now), 'expires', digits(expires), 'forgotten', digits(forgotten), 'meta', ARGV[1])
expireAt(forgotten)
return {1}
