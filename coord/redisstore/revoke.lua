-- Revokes a token.
--
-- KEYS    the token
-- Result  {state before the call}; if it was usable, the token is now revoked
-- Clock   the server's
-- Atomic  because between the check and the write another caller could use it

local found = state(t)
if found == usable then
  call('HSET', key, 'revoked', digits(now))
  expire_at(t.forgotten)
end
return {found}
