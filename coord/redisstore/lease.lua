-- The second part of each script on a lease. A user is one hash:
--   number    the last fencing number
--   since     the time when the last lease began, in µs since 1970
--   grant     the ID of the last lease
--   name      the name of its holder
--   until     the time when it ends, in µs since 1970
-- A release deletes the last three fields.
--
-- The key stays for some time after a lease: until MinInterval has passed, and long enough for a larger next number if
-- the clock is set back. After that, numbers begin again with the time in µs. The time is larger than all earlier numbers,
-- because a number is larger than its time only if several leases are granted within 1 µs or the clock was set back.

-- read returns the user. It returns nil if there is none, and nil and an error reply if the key holds something else. The
-- field ends of the result is nil if the lease was released.
local function read()
  local m, wrong = fields('number', 'since', 'grant', 'name', 'until')
  if not m then return nil, wrong end
  local l = {number = whole(m[1]), since = whole(m[2]), grant = m[3], name = m[4], ends = whole(m[5])}
  if not (l.number and l.since) or l.grant and not (l.name and l.ends) then return foreign() end
  return l
end

-- The script ends here if the key holds something else.
local l, wrong = read()
if wrong then return wrong end

local function held(l) return l and l.grant and l.ends > now end

-- keep sets the expiry of the user's key. ends is the time when the user's last lease ends.
local function keep(l, ends, interval, keep_for)
  expire_at(math.max(ends + keep_for, l.since + interval))
end
