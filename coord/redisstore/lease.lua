-- The second part of each script on a lease. A user is one hash:
--   number    the last fencing number
--   since     µs since 1970: when the last lease began
--   grant     the ID of the lease, and with it, until it is released:
--   name      of its holder
--   until     µs since 1970: when it ends
--
-- The key stays for some time after a lease, until MinInterval has passed and so that the next number is larger even if
-- the clock is set back. After that, numbers begin again with the time in µs. It is larger than all earlier numbers if
-- the clock is not behind them: the number exceeds the clock by at most the number of leases granted within one µs.

-- read returns the user; nil if it is unknown; nil and an error reply if the key holds something else. ends is when the
-- lease ends, nil if it was released.
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

-- keep keeps the user, whose last lease ends at ends.
local function keep(l, ends, interval, keep_for)
  expire_at(math.max(ends + keep_for, l.since + interval))
end
