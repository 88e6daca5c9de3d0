-- list: the beginning of a script of lists. Those with one head are one, and lists come
-- one after another: KEYS has the keys of all, and the reply is one string.
--
-- ARGV    seed, a number that no other run of any script gets
--         each list: how many values its head has, the values, how many keys, how many
--         numbers there are for each key, the numbers
-- Locals  seed
--         at   where in ARGV the next list begins, key the number of keys before it
local seed, at, key = tonumber(ARGV[1]), 2, 0
