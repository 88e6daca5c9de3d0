-- Adds a session to a user's index. An index is a sorted set:
--   16 bytes  locator of a session that was bound to the user, or is about to be;
--             score: when that began, in µs since 1970
--   longest   score: the longest absolute limit, in µs, under which one was bound
--
-- Every session of the user has an entry, but an entry may be wrong: the session itself decides. The entry comes before
-- the session is bound. It goes when the session cannot exist or be bound any longer: after the session was removed,
-- because no locator is used twice, or a minute after the entry came.
--
-- KEYS    the index
-- ARGV    locator, absolute limit in µs
-- Result  {1}
-- Clock   the server's of this key; the session's may differ by up to margin
-- Atomic  because the expiry must be that of the longest limit, in any order of the calls

local margin, longest = 60 * 1000000, 'longest'

local absolute = math.max(number(ARGV[2]), number(call('ZSCORE', key, longest)) or 0)
call('ZREMRANGEBYSCORE', key, '-inf', digits(now - absolute - margin))
call('ZADD', key, digits(absolute), longest, digits(now), ARGV[1])
expire_at(now + absolute + margin)
return {1}
