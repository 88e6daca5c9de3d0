-- Uses a token.
--
-- KEYS    the token
-- ARGV    name of the token's user
-- Result  usable, the metadata and the token as it is now, if this call used it; otherwise its state, no metadata and the
--         token; see reply in token.lua
-- Clock   the server's
-- Atomic  because between the check and the write another caller could use it

local found, meta = state(t), ''
if found == usable then
  t.used, t.by, meta = now, ARGV[1], call('HGET', key, 'meta') or ''
  call('HSET', key, 'used', digits(now), 'by', t.by)
  expire_at(t.forgotten)
end
return reply(found, meta, t)
