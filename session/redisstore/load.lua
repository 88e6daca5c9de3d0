-- Returns a session, by its digest or by its user.
--
-- KEYS     the session
-- ARGV     idle limit, absolute limit, time since the last touch after which it is touched
--          again, all in µs
--          digest that it must have, or have had until its grace is over; or empty
--          user to whom it must be bound if there is no digest; this is not use
-- Result   {created in µs, touched in µs, 1 if the digest is the old one and 0 if not,
--          user or '', {name, value, …} of its fields};
--          {0} if it does not exist, has expired, or has another digest or user
-- Clock    the server's
-- Atomic   because between the read and the touch another caller could destroy
--          the session, and the touch would leave half a record

local idle, absolute, touch, digest = number(ARGV[1]), number(ARGV[2]), number(ARGV[3]), ARGV[4]
local s, wrong, fields = readAll()
if digest == '' and (wrong or s and s.user ~= ARGV[5]) then return {0} end
if wrong then return wrong end
s = alive(s, idle, absolute)
if not s then return {0} end
local old = digest ~= '' and s.digest ~= digest
if old and (s.old ~= digest or s.grace <= now) then return {0} end
if digest ~= '' and not old and now - s.touched >= touch then
  s.touched = now
  call('HSET', key, 'touched', digits(now))
  expire(s, idle, absolute)
end
return {s.created, s.touched, old and 1 or 0, s.user or '', fields}
