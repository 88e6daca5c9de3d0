-- Reads a token.
--
-- KEYS    the token
-- ARGV    nothing
-- Result  state, metadata, and the token, as reply of token.lua returns them
-- Clock   the server's
-- Atomic  as it reads twice; it only drops what is forgotten

local t, wrong = read()
if wrong then return wrong end
return reply(state(t), t and call('HGET', key, 'meta') or '', t)
