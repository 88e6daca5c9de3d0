-- Adds a session to a user's index. An index is a sorted set with these members:
--   16 bytes  the locator of a session that is bound to the user, or may be soon;
--             its score is the time when the entry was added, in µs since 1970
--   longest   its score is the longest absolute limit of the sessions, in µs
--
-- The entry is added before the session is bound, so every session of the user has an entry. Some entries are wrong: only
-- the session itself tells whether it is bound to the user. index_drop.lua removes an entry at once if its session was
-- removed, because locators are not reused. If the session has ended or is not bound, index_drop.lua removes the entry
-- after a minute, because then no commit can bind the session any more.
--
-- KEYS    the index
-- ARGV    locator, absolute limit in µs
-- Result  {1}
-- Clock   of the server that has the index; the clock of the session's server may differ by up to margin
-- Atomic  so that concurrent calls cannot set an expiry that is shorter than the longest limit

local margin, longest = 60 * 1000000, 'longest'

local absolute = math.max(number(ARGV[2]), number(call('ZSCORE', key, longest)) or 0)
call('ZREMRANGEBYSCORE', key, '-inf', digits(now - absolute - margin))
call('ZADD', key, digits(absolute), longest, digits(now), ARGV[1])
expire_at(now + absolute + margin)
return {1}
