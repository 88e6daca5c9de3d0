-- The second part of each script on a token. A token is one hash, named by the SHA-256 of its id:
--   issued, expires, forgotten   µs since 1970
--   meta      the token's metadata
--   used, by  µs since 1970, and the name of the token's user; once it is used
--   revoked   µs since 1970; once it is revoked
--
-- Its state is one of these numbers.

local none, usable, used, expired, revoked = 0, 1, 2, 3, 4

-- read returns the token. It returns nil if there is none, and nil and an error reply if the key holds something else. It
-- removes a token whose time to be forgotten has come.
local function read()
  local m, wrong = fields('issued', 'expires', 'forgotten', 'used', 'by', 'revoked')
  if not m then return nil, wrong end
  local t = {issued = whole(m[1]), expires = whole(m[2]), forgotten = whole(m[3]),
    used = whole(m[4]), by = m[5], revoked = whole(m[6])}
  if not (t.issued and t.expires and t.forgotten) or (m[4] or m[5]) and not (t.used and t.by)
    or m[6] and not t.revoked then return foreign() end
  if t.forgotten > now then return t end
  call('UNLINK', key)
end

local function state(t)
  if not t then return none end
  if t.used then return used end
  if t.revoked then return revoked end
  if t.expires <= now then return expired end
  return usable
end

-- reply returns {state, metadata, issued, expires, forgotten, used, by, revoked}, with 0 and '' for missing parts. For no
-- token it returns {none}.
local function reply(found, meta, t)
  if not t then return {none} end
  return {found, meta, t.issued, t.expires, t.forgotten, t.used or 0, t.by or '', t.revoked or 0}
end

-- The script ends here if the key holds something else.
local t, wrong = read()
if wrong then return wrong end
