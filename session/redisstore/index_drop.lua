-- Drops old entries from a user's index (see index_add.lua), and the index if it has no
-- others.
--
-- KEYS     the index
-- ARGV     µs that an entry must be old to be dropped, locators
-- Result   {1}
-- Clock    the server's of this key
-- Atomic   because between the look at a score and the removal the session could be
--          bound again

local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local age = tonumber(ARGV[1])

for i = 2, #ARGV do
  local began = tonumber(call('ZSCORE', KEYS[1], ARGV[i]))
  if began and now - began >= age then call('ZREM', KEYS[1], ARGV[i]) end
end
if call('ZCARD', KEYS[1]) <= 1 then call('UNLINK', KEYS[1]) end
return {1}
