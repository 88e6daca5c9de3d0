-- Tells who holds leases.
--
-- Calls   nothing
-- Result  of each: 1 or 0 for nobody, number, name, since, until
-- Clock   the server's
-- Atomic  as one read

for i = 1, #KEYS do
  local l, wrong = read(KEYS[i])
  local o = 5 * i - 5
  if held(l) then
    out[o + 1], out[o + 2], out[o + 3], out[o + 4], out[o + 5] = 1, l.number, l.name, l.since, l.ends
  else
    out[o + 1], out[o + 2], out[o + 3], out[o + 4], out[o + 5] = wrong or 0, 0, '', 0, 0
  end
end
return out
