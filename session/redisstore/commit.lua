-- Creates a session or changes some fields of one, and touches it.
--
-- KEYS[1]  the session
-- ARGV[1]  1 to create it, 0 to change it
-- ARGV[2]  digest: of the new session, or that the session must have
-- ARGV[3]  digest that replaces it, or empty
-- ARGV[4]  idle limit, µs
-- ARGV[5]  absolute limit, µs
-- ARGV[6]  bytes that the fields may cost together
-- ARGV[7]  bytes that a field costs besides its name and value
-- ARGV[8…] 's', field, value to set it, or 'd', field to delete it; each field once
-- Result   1 done, 0 gone or another digest, -1 there already, -2 too large;
--          nothing is changed unless it is 1
-- Clock    the server's
-- Atomic   because between the check that the session is there and the writes
--          another caller could destroy it, and a write would bring it back

local key, create, digest, rotate = KEYS[1], ARGV[1] == '1', ARGV[2], ARGV[3]
local idle, absolute = tonumber(ARGV[4]), tonumber(ARGV[5])
local limit, perField = tonumber(ARGV[6]), tonumber(ARGV[7])

local s, wrong = readAlive(key, idle, absolute)
if wrong then return wrong end
if create then
  if s then return -1 end
  s = {digest = digest, created = now, size = 0}
elseif not s or s.digest ~= digest then
  return 0
end

-- cost returns what a field takes now.
local function cost(field)
  local value = redis.call('HSTRLEN', key, field)
  if value == 0 and redis.call('HEXISTS', key, field) == 0 then return 0 end
  return #field + value + perField
end

-- Every refusal comes before the first write.
local size, i = s.size, 8
while ARGV[i] do
  size = size - cost(ARGV[i + 1])
  if ARGV[i] == 's' then
    size = size + #ARGV[i + 1] + #ARGV[i + 2] + perField
    i = i + 3
  else
    i = i + 2
  end
end
if size > limit and size > s.size then return -2 end

if rotate ~= '' then s.digest = rotate end
s.touched = now
redis.call('HSET', key, 'digest', s.digest, 'created', digits(s.created),
  'touched', digits(s.touched), 'size', digits(size))
i = 8
while ARGV[i] do
  if ARGV[i] == 's' then
    redis.call('HSET', key, ARGV[i + 1], ARGV[i + 2])
    i = i + 3
  else
    redis.call('HDEL', key, ARGV[i + 1])
    i = i + 2
  end
end
expire(key, s, idle, absolute)
return 1
