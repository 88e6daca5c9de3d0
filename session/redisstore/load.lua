-- Returns a session and counts that as use.
--
-- KEYS[1]  the session
-- ARGV[1]  digest that it must have
-- ARGV[2]  idle limit, µs
-- ARGV[3]  absolute limit, µs
-- ARGV[4]  it is touched this long after it was last touched, µs
-- Result   {created in µs, {name, value, …} of the whole hash}, or
--          0 if it is unknown or over, or has another digest
-- Clock    the server's
-- Atomic   because between the read and the touch another caller could destroy
--          the session, and the touch would leave a key that is none

local idle, absolute, touch = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local s, wrong = readAlive(KEYS[1], idle, absolute)
if wrong then return wrong end
if not s or s.digest ~= ARGV[1] then return 0 end

if now - s.touched >= touch then
  s.touched = now
  redis.call('HSET', KEYS[1], 'touched', digits(now))
  expire(KEYS[1], s, idle, absolute)
end
return {s.created, redis.call('HGETALL', KEYS[1])}
