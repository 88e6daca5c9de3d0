-- Ends leases before their time.
--
-- Calls   ID; in µs: time between the beginnings of two leases, time for which the user is
--         remembered
-- Result  of each: 1 done, 0 it is not the caller's
-- Clock   the server's
-- Atomic  because between the look at the ID and the write another caller could get it

local function release(key, id, interval, remember)
  local l, wrong = read(key)
  if wrong then return wrong end
  if not held(l) or l.grant ~= id then return 0 end
  call('HDEL', key, 'grant', 'name', 'until', 'latest')
  keep(key, l, now, interval, remember)
  return 1
end

for i = 1, #KEYS do
  out[i] = release(KEYS[i], ARGV[at], number(ARGV[at + 1]), number(ARGV[at + 2]))
  at = at + 3
end
return out
