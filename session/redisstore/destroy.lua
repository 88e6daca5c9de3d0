-- Removes sessions.
--
-- Calls    digest that it must have
-- Result   of each: 1 nothing is there any more, 0 it has another digest and stays
-- Clock    the server's, only to let Redis drop what is over
-- Atomic   because another caller could rotate the digest between the check
--          and the removal

for i = 1, #KEYS do
  local s, wrong = read(KEYS[i])
  if wrong then
    out[i] = wrong
  elseif s and s.digest ~= ARGV[at] then
    out[i] = 0
  else
    if s then call('UNLINK', KEYS[i]) end
    out[i] = 1
  end
  at = at + 1
end
return out
