-- Uses a token.
--
-- KEYS    the token
-- ARGV    name of the token's user
-- Result  the result of reply in token.lua: if this call used the token, with the state usable and the metadata;
--         otherwise with the token's state and without metadata
-- Clock   the server's
-- Atomic  because between the check and the write another caller could use it

local found, meta = state(t), ''
if found == usable then
  t.used, t.by, meta = now, ARGV[1], call('HGET', key, 'meta') or ''
  call('HSET', key, 'used', digits(now), 'by', t.by)
  expire_at(t.forgotten)
end
return reply(found, meta, t)
