-- Adds a session to a user's index. An index is a sorted set:
--   16 bytes  the locator of a session that was bound to the user, or is about to be;
--             score: when that began, in µs since 1970
--   longest   score: the longest absolute limit, in µs, under which one was bound
--
-- An entry that is there says little, as the session has the last word. A locator that is
-- not there is of no session of the user's: its entry comes before the session
-- is bound, and goes only when the session cannot be alive or bound any longer: once it
-- was removed (no session is made at its locator again), or a minute after the entry came.
--
-- KEYS     the index
-- ARGV     locator, absolute limit in µs
-- Result   {1}
-- Clock    the server's of this key; the session's may differ by up to margin
-- Atomic   because the expiry must be that of the longest limit, whichever comes last

local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local margin, longest = 60 * 1000000, 'longest'

local function digits(n) return string.format('%.0f', n) end

local absolute = math.max(tonumber(ARGV[2]), tonumber(call('ZSCORE', KEYS[1], longest)) or 0)
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', digits(now - absolute - margin))
call('ZADD', KEYS[1], digits(absolute), longest, digits(now), ARGV[1])
call('PEXPIREAT', KEYS[1], digits(math.ceil((now + absolute + margin) / 1000)))
return {1}
