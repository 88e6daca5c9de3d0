-- The first part of each script. KEYS[1] is the key.
--
-- Clock   the server's TIME in µs, which is read once; Lua numbers are exact up to 2^53, which is the year 2255

local call, number, key = redis.call, tonumber, KEYS[1]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local function digits(n) return string.format('%.0f', n) end

-- whole returns the number in v. It returns nil if digits cannot have written v.
local function whole(v)
  if v and #v <= 16 and string.find(v, '^%d+$') then return number(v) end
end

-- expire_at sets the expiry of the key to a time in µs, rounded up to ms.
local function expire_at(at) call('PEXPIREAT', key, digits(math.ceil(at / 1000))) end

local function foreign() return nil, redis.error_reply('FOREIGN the key holds another hash') end

-- fields returns the values of some fields of the hash. It returns nil if the key does not exist, and nil and an error
-- reply if the key is not a hash. The first of the fields must exist in every hash of the store.
local function fields(...)
  local m = redis.pcall('HMGET', key, ...)
  if m.err then return nil, m end
  if not m[1] and call('EXISTS', key) == 0 then return nil end
  return m
end
