-- The second part of the scripts that change a session. KEYS[1] is the session, one hash:
--   digest   SHA-256 of the secret: 32 bytes
--   created  µs since 1970
--   touched  µs since 1970: when it was last used
--   size     bytes that its fields cost together
--   old      the previous digest, if it may still read, with
--   grace    µs since 1970 until which it may
--   user     the user to whom it is bound, if any, with
--   over     µs since 1970 at which it ends at the latest, before the user's index expires
--   device   the device that has last used it while it was bound to a user, if that was recorded
--   remember 1 if the limit of remembered sessions applies
--   :<name>  a field; the colon distinguishes its name from those above
--
-- Digests are compared with ==. Lua has one copy of each string and compares addresses, so the time that this takes
-- reveals nothing.

-- whole returns the number in v, or nil if v is not a whole number.
local function whole(v)
  if v and #v <= 16 and string.find(v, '^%d+$') then return number(v) end
end

-- read returns the session, or nil if the key does not exist, or nil and an error reply if the key holds something else.
local function read()
  local m = redis.pcall('HMGET', key, 'digest', 'created', 'touched', 'size', 'old', 'grace', 'user', 'over', 'remember')
  if m.err then return nil, m end
  if not m[1] and call('EXISTS', key) == 0 then return nil end
  local s = {digest = m[1], created = whole(m[2]), touched = whole(m[3]), size = whole(m[4]), old = m[5],
    grace = whole(m[6]), user = m[7], over = whole(m[8]), remember = m[9] == '1'}
  if s.digest and #s.digest == 32 and s.created and s.touched and s.size
    and (not s.old or #s.old == 32 and s.grace) and (not s.user or s.over) then return s end
  return nil, redis.error_reply('FOREIGN the key holds another hash')
end
