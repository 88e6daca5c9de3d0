-- Returns what is in a user's index (see index_add.lua).
--
-- KEYS     the index
-- ARGV     nothing
-- Result   {{locator, …, 'longest'}}
-- Clock    none
-- Atomic   as one command

return {redis.call('ZRANGE', KEYS[1], 0, -1)}
