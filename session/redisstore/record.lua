-- The second part of the scripts that change a session. KEYS[1] is the session, one hash:
--   digest   SHA-256 of the secret: 32 bytes
--   created  µs since 1970
--   touched  µs since 1970: when it was last used
--   size     bytes that its fields cost together
--   old      the previous digest, if it may still read, with
--   grace    µs since 1970 until which it may
--   user     the user to whom it is bound, if it is, with
--   over     µs since 1970 at which it ends at the latest, before the user's index expires
--   :<name>  a field; the colon keeps any name apart from those above
--
-- Digests are compared with ==. Lua keeps one copy of a string and compares
-- addresses, and what timing could reveal of a digest is of no use: a login takes
-- the secret behind it.

-- ends returns when a session expires, in µs.
local function ends(s, idle, absolute)
  return math.min(s.touched + idle, s.created + absolute, s.over or math.huge)
end

-- expire lets Redis drop the key, not before the session expires.
local function expire(s, idle, absolute) expire_at(ends(s, idle, absolute)) end

-- session returns the session with these fields of the hash, or nil and an error reply.
local function session(digest, created, touched, size, old, grace, user, over)
  local s = {digest = digest, created = whole(created), touched = whole(touched), size = whole(size),
    old = old, grace = whole(grace), user = user, over = whole(over)}
  if s.digest and #s.digest == 32 and s.created and s.touched and s.size
    and (not old or #old == 32 and s.grace) and (not user or s.over) then return s end
  return foreign()
end

-- read returns the session, nil if the key does not exist, and nil and an error reply if it
-- holds something else.
local function read()
  local m, wrong = fields('digest', 'created', 'touched', 'size', 'old', 'grace', 'user', 'over')
  if not m then return nil, wrong end
  return session(m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8])
end

-- alive returns s; nil, and removes it, if it has expired.
local function alive(s, idle, absolute)
  if not s or ends(s, idle, absolute) > now then return s end
  call('UNLINK', key)
end
