-- Drops entries from a user's index (see index_add.lua), and an index without entries.
--
-- KEYS    the index
-- ARGV    for each entry: its minimum age in µs, locator
-- Result  {1}
-- Clock   of the server that has the index
-- Atomic  because the session could be bound again between the check of a score and the removal

for i = 1, #ARGV, 2 do
  local began = number(call('ZSCORE', key, ARGV[i + 1]))
  if began and now - began >= number(ARGV[i]) then call('ZREM', key, ARGV[i + 1]) end
end
if call('ZCARD', key) <= 1 then call('UNLINK', key) end
return {1}
