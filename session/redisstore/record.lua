-- The beginning of each script of this folder: Go puts it in front of them. Each call has
-- one key, a session, which is one hash:
--   digest   SHA-256 of the secret: 32 bytes
--   created  µs since 1970
--   touched  µs since 1970: when it was last used
--   size     bytes that its fields cost together
--   :<name>  a field; no name, whatever its bytes, can meet the four above
--
-- Clock: the server's TIME, read once, in whole µs, which a Lua number holds
-- exactly until the year 2255.
--
-- Digests are compared with ==. Lua keeps one copy of a string and compares
-- addresses, and what timing could tell of a digest would log nobody in: that
-- takes the secret behind it.

local call, number = redis.call, tonumber
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local out = {}

local function digits(n) return string.format('%.0f', n) end

-- whole returns the number that v says, nil if it is not one that digits made.
local function whole(v)
  if v and #v <= 16 and string.find(v, '^%d+$') then return number(v) end
end

-- limits returns what a head says: idle limit, absolute limit, µs after which use is noted.
local function limits(name)
  local h = heads[name]
  return number(ARGV[h + 1]), number(ARGV[h + 2]), number(ARGV[h + 3])
end

-- ends returns when a session is over, in µs.
local function ends(s, idle, absolute)
  return math.min(s.touched + idle, s.created + absolute)
end

-- expire lets Redis drop the key, not before the session is over.
local function expire(key, s, idle, absolute)
  call('PEXPIREAT', key, digits(math.ceil(ends(s, idle, absolute) / 1000)))
end

-- session makes one of the four, or returns an error reply.
local function session(digest, created, touched, size)
  local s = {digest = digest, created = whole(created), touched = whole(touched), size = whole(size)}
  if s.digest and #s.digest == 32 and s.created and s.touched and s.size then return s end
  return nil, redis.error_reply('NOTSESSION the key holds a hash that is not a session')
end

-- read returns the session at key, nil if nothing is there, and nil and an error
-- reply if something else is there.
local function read(key)
  local m = redis.pcall('HMGET', key, 'digest', 'created', 'touched', 'size')
  if m.err then return nil, m end
  if not (m[1] or m[2] or m[3] or m[4]) and call('EXISTS', key) == 0 then return nil end
  return session(m[1], m[2], m[3], m[4])
end

-- alive returns s, or nil if it is over, and removes it then.
local function alive(key, s, idle, absolute)
  if not s or ends(s, idle, absolute) > now then return s end
  call('UNLINK', key)
end
