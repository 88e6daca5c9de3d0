-- The second part of each script on tokens. A token is one hash, whose name is the SHA-256
-- of its id:
--   issued, expires, forgotten   µs since 1970
--   meta      its metadata
--   used, by  µs since 1970, and who did it; once it is used
--   revoked   µs since 1970; once it is revoked
--
-- Result  of each call of each script, eight elements: the token's state as the call found
--         it, metadata, issued, expires, forgotten, used, by, revoked; 0 and '' for what is
--         not. The states are those below.

local none, usable, used, expired, revoked = 0, 1, 2, 3, 4

-- read returns the token at key, nil if there is none, and nil and an error reply if the
-- key holds something else.
local function read(key)
  local m, wrong = fields(key, 'issued', 'expires', 'forgotten', 'used', 'by', 'revoked')
  if not m then return nil, wrong end
  local t = {issued = whole(m[1]), expires = whole(m[2]), forgotten = whole(m[3]),
    used = whole(m[4]), by = m[5], revoked = whole(m[6])}
  if not (t.issued and t.expires and t.forgotten) or (m[4] or m[5]) and not (t.used and t.by)
    or m[6] and not t.revoked then return foreign() end
  if t.forgotten > now then return t end
  call('UNLINK', key)
end

local function state(t)
  if t.used then return used end
  if t.revoked then return revoked end
  if t.expires <= now then return expired end
  return usable
end

-- answer makes the result of a call: of a token, or of none, or the error reply.
local function answer(t, wrong, found, meta)
  t = t or {}
  for _, v in ipairs({wrong or found, meta or '', t.issued or 0, t.expires or 0, t.forgotten or 0,
    t.used or 0, t.by or '', t.revoked or 0}) do out[#out + 1] = v end
end
