-- Revokes a token.
--
-- KEYS    the token
-- Result  {its state before}; if that is usable, the token is revoked now
-- Clock   the server's
-- Atomic  because between the check and the write another caller could use it

local found = state(t)
if found == usable then
  call('HSET', key, 'revoked', digits(now))
  expire_at(t.forgotten)
end
return {found}
