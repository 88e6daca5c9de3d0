-- The first part of each script. KEYS[1] is the key.
--
-- Clock   the server's TIME, read once, in µs: a Lua number holds whole numbers up to 2^53, which is the year 2255

local call, number, key = redis.call, tonumber, KEYS[1]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local function digits(n) return string.format('%.0f', n) end

-- whole returns the number in v, nil if digits did not write it.
local function whole(v)
  if v and #v <= 16 and string.find(v, '^%d+$') then return number(v) end
end

-- expire_at lets Redis drop the key, not before that time in µs.
local function expire_at(at) call('PEXPIREAT', key, digits(math.ceil(at / 1000))) end

local function foreign() return nil, redis.error_reply('FOREIGN the key holds another hash') end

-- fields returns the values of some fields of the hash; nil if the key does not exist, and nil and
-- an error reply if it is not a hash. The first field is in each of the store's hashes.
local function fields(...)
  local m = redis.pcall('HMGET', key, ...)
  if m.err then return nil, m end
  if not m[1] and call('EXISTS', key) == 0 then return nil end
  return m
end
