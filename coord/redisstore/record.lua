-- The beginning of each script: Go puts it in front of them. KEYS[1] is a hash.
--
-- Clock: the server's TIME, read once, in whole µs, which a Lua number holds exactly
-- until the year 2255.

local call, number, key = redis.call, tonumber, KEYS[1]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local function digits(n) return string.format('%.0f', n) end

-- whole returns the number in v, nil if digits did not write it.
local function whole(v)
  if v and #v <= 16 and string.find(v, '^%d+$') then return number(v) end
end

-- expire lets Redis drop the key, not before that time in µs.
local function expire(at) call('PEXPIREAT', key, digits(math.ceil(at / 1000))) end

-- fields returns the values of some fields of the hash; nil if the key is not there, and nil
-- and an error reply if it is something else. The first field is in each of our hashes.
local function fields(...)
  local m = redis.pcall('HMGET', key, ...)
  if m.err then return nil, m end
  if not m[1] and call('EXISTS', key) == 0 then return nil end
  return m
end

local function foreign() return nil, redis.error_reply('FOREIGN the key holds another hash') end
