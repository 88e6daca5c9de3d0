-- The first part of each script, except load.lua and index_list.lua. KEYS[1] is the key.
--
-- Clock   the server's TIME, read once, in µs: a Lua number holds whole numbers up to 2^53, which is the year 2255

local call, number, key = redis.call, tonumber, KEYS[1]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local function digits(n) return string.format('%.0f', n) end

-- expire_at makes Redis delete the key at this time in µs, or up to 1 ms later.
local function expire_at(at) call('PEXPIREAT', key, digits(math.ceil(at / 1000))) end
