-- Returns a user's index (see index_add.lua).
--
-- KEYS    the index
-- Result  {{locator, …, 'longest'}}
-- Atomic  as one command

return {redis.call('ZRANGE', KEYS[1], 0, -1)}
