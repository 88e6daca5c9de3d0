-- frame: the beginning of each script. Calls of one moment come together, one after
-- another: KEYS has the keys of all, and the reply is one array with the elements of all.
--
-- ARGV    seed, a number that no other run of any script gets
--         how many heads, then each of them: its name, how many values, the values
--         the calls; which of them has how many arguments, the script knows
-- Locals  seed
--         heads  by name: value i of it is ARGV[heads[name] + i]
--         at     where in ARGV the next call begins, key the number of keys before it
local seed, heads, at, key = tonumber(ARGV[1]), {}, 3, 0
for _ = 1, tonumber(ARGV[2]) do
  heads[ARGV[at]] = at + 1
  at = at + 2 + tonumber(ARGV[at + 1])
end

