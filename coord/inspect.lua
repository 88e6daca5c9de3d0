-- Reads tokens.
--
-- Calls   nothing
-- Result  state, metadata, and the token
-- Clock   the server's
-- Atomic  as it reads twice; it only drops what is forgotten

for i = 1, #KEYS do
  local t, wrong = read(KEYS[i])
  answer(t, wrong, t and state(t) or none, t and call('HGET', KEYS[i], 'meta'))
end
return out
