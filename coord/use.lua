-- Uses tokens.
--
-- Calls   who does
-- Result  state usable, metadata, and the token as it is now, if it was used by this call;
--         otherwise its state, and the token without its metadata
-- Clock   the server's
-- Atomic  because between the look at the state and the write another caller could use it

for i = 1, #KEYS do
  local key, t, wrong = KEYS[i], read(KEYS[i])
  local found, meta = none, nil
  if t then found = state(t) end
  if found == usable then
    t.used, t.by, meta = now, ARGV[at], call('HGET', key, 'meta')
    call('HSET', key, 'used', digits(now), 'by', t.by)
    expire(key, t.forgotten)
  end
  answer(t, wrong, found, meta)
  at = at + 1
end
return out
