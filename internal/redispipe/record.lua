-- The beginning of each script on a record, such as a session or a token: NewRecordScript puts it
-- in front of the others. KEYS[1] is the record.
--
-- Clock: the server's TIME, read once, in whole µs, which a Lua number holds exactly until the
-- year 2255.

local call, number, key = redis.call, tonumber, KEYS[1]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local function digits(n) return string.format('%.0f', n) end

-- whole returns the number in v, nil if digits did not write it.
local function whole(v)
  if v and #v <= 16 and string.find(v, '^%d+$') then return number(v) end
end

-- expireAt lets Redis drop the key, not before that time in µs.
local function expireAt(at) call('PEXPIREAT', key, digits(math.ceil(at / 1000))) end

local function foreign() return nil, redis.error_reply('FOREIGN the key holds another hash') end

-- fields returns the values of some fields of the hash; nil if the key does not exist, and nil and
-- an error reply if it is not a hash. The first field is in each of the store's hashes.
local function fields(...)
  local m = redis.pcall('HMGET', key, ...)
  if m.err then return nil, m end
  if not m[1] and call('EXISTS', key) == 0 then return nil end
  return m
end
