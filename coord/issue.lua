-- Makes tokens.
--
-- Calls   metadata; µs for which it can be used; µs for which it is kept after that
-- Result  state none if it was made; otherwise it was there, and is as it was
-- Clock   the server's
-- Atomic  because between the look and the write another caller could issue it, and use it

for i = 1, #KEYS do
  local key, t, wrong = KEYS[i], read(KEYS[i])
  if wrong or t then
    answer(t, wrong, t and state(t))
  else
    local expires = now + number(ARGV[at + 1])
    local forgotten = expires + number(ARGV[at + 2])
    call('HSET', key, 'issued', digits(now), 'expires', digits(expires), 'forgotten', digits(forgotten), 'meta', ARGV[at])
    expire(key, forgotten)
    answer(nil, nil, none)
  end
  at = at + 3
end
return out
