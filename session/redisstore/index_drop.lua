-- Drops entries from a user's index (see index_add.lua), and the index if it has no
-- others.
--
-- KEYS     the index
-- ARGV     for each entry: µs that it must be old to be dropped, locator
-- Result   {1}
-- Clock    the server's of this key
-- Atomic   because between the look at a score and the removal the session could be
--          bound again

local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

for i = 1, #ARGV, 2 do
  local began = tonumber(call('ZSCORE', KEYS[1], ARGV[i + 1]))
  if began and now - began >= tonumber(ARGV[i]) then call('ZREM', KEYS[1], ARGV[i + 1]) end
end
if call('ZCARD', KEYS[1]) <= 1 then call('UNLINK', KEYS[1]) end
return {1}
