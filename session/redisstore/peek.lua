-- Returns sessions of a user, and counts that as nothing.
--
-- Calls    head: idle limit, absolute limit, a time that does not matter here, in µs
--          user whom it must be bound to
-- Result   as of load.lua; 0 and whatever if it is unknown or over, or is not the user's
-- Clock    the server's
-- Atomic   as one command; it only drops what is over

local function peek(key, idle, absolute, user)
  local s, _, fields = readAll(key) -- what is no session is nobody's
  s = alive(key, s, idle, absolute)
  if not s or s.user ~= user then return 0 end
  return s.created, s.touched, fields
end

for i = 1, #KEYS do
  local idle, absolute = limits(ARGV[at])
  local created, touched, fields = peek(KEYS[i], idle, absolute, ARGV[at + 1])
  local o = 5 * i - 5
  out[o + 1], out[o + 2], out[o + 3], out[o + 4], out[o + 5] = created, touched or 0, 0, ARGV[at + 1], fields or 0
  at = at + 2
end
return out
