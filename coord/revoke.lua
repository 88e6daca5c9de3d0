-- Revokes tokens.
--
-- Calls   nothing
-- Result  state as it was: if that is usable, the token is revoked now
-- Clock   the server's
-- Atomic  because between the look at the state and the write another caller could use it

for i = 1, #KEYS do
  local t, wrong = read(KEYS[i])
  local found = t and state(t) or none
  if found == usable then
    call('HSET', KEYS[i], 'revoked', digits(now))
    expire(KEYS[i], t.forgotten)
  end
  answer(t, wrong, found)
end
return out
