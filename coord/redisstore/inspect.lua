-- Reads a token.
--
-- KEYS    the token
-- Result  the result of reply in token.lua, with the metadata
-- Clock   the server's
-- Atomic  because it reads the token twice

return reply(state(t), t and call('HGET', key, 'meta') or '', t)
