-- Reads a token.
--
-- KEYS    the token
-- Result  state, metadata and the token; see reply in token.lua
-- Clock   the server's
-- Atomic  as it reads twice

return reply(state(t), t and call('HGET', key, 'meta') or '', t)
