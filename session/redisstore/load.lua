-- Returns sessions and counts that as use.
--
-- Calls    head: idle limit, absolute limit, it is touched so long after it was last
--          touched, all in µs
--          digest that it must have, or have had until its grace is over
-- Result   of each: created in µs, touched in µs, 1 if it had the digest and 0 if it has
--          it, user or '', {name, value, …} of its fields; or
--          0 and whatever if it is unknown or over, or has another digest
-- Clock    the server's
-- Atomic   because between the read and the touch another caller could destroy
--          the session, and the touch would leave a key that is none

local function load(key, idle, absolute, touch, digest)
  local s, wrong, fields = readAll(key)
  if wrong then return wrong end
  s = alive(key, s, idle, absolute)
  if not s then return 0 end
  if s.digest ~= digest then
    if s.old ~= digest or s.grace <= now then return 0 end
    return s.created, s.touched, 1, s.user, fields
  end
  if now - s.touched >= touch then
    s.touched = now
    call('HSET', key, 'touched', digits(now))
    expire(key, s, idle, absolute)
  end
  return s.created, s.touched, 0, s.user, fields
end

for i = 1, #KEYS do
  local idle, absolute, touch = limits(ARGV[at])
  local created, touched, old, user, fields = load(KEYS[i], idle, absolute, touch, ARGV[at + 1])
  local o = 5 * i - 5
  out[o + 1], out[o + 2], out[o + 3], out[o + 4], out[o + 5] = created, touched or 0, old or 0, user or '', fields or 0
  at = at + 2
end
return out
