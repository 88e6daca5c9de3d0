-- Prolongs leases.
--
-- Calls   ID; in µs: lifetime, time between the beginnings of two leases, time for which the
--         user is remembered after the lease
-- Result  of each: 1, µs that it lasts from now; 2, the same, if that cannot be made longer;
--         0, 0 if it is not the caller's
-- Clock   the server's
-- Atomic  because between the look at the ID and the write the lease could end, and another
--         caller could get it

local function renew(key, id, life, interval, remember)
  local l, wrong = read(key)
  if wrong then return wrong end
  if not held(l) or l.grant ~= id then return 0 end
  local ends = math.min(now + life, l.latest)
  if ends <= l.ends then return 2, l.ends - now end
  call('HSET', key, 'until', digits(ends))
  keep(key, l, ends, interval, remember)
  return 1, ends - now
end

for i = 1, #KEYS do
  local verdict, left = renew(KEYS[i], ARGV[at], number(ARGV[at + 1]), number(ARGV[at + 2]), number(ARGV[at + 3]))
  out[2 * i - 1], out[2 * i] = verdict, left or 0
  at = at + 4
end
return out
