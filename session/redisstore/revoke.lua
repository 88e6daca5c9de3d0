-- Removes sessions of a user.
--
-- Calls    user whom it must be bound to
-- Result   of each: 1 removed, 0 nothing is there, or it is not the user's and stays
-- Clock    none
-- Atomic   because another caller could bind the session to somebody else between the
--          check and the removal

for i = 1, #KEYS do
  local s = read(KEYS[i]) -- what is no session is nobody's
  out[i] = 0
  if s and s.user == ARGV[at] then
    call('UNLINK', KEYS[i])
    out[i] = 1
  end
  at = at + 1
end
return out
