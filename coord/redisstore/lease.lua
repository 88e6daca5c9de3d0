-- The second part of each script on a lease. What is known of a user is one hash:
--   number    the last fencing number
--   since     µs since 1970: when the last lease began
--   grant     the ID of the lease, and with it, until it is released:
--   name      of its holder
--   until     µs since 1970: when it ends
--   latest    µs since 1970: when it ends however often it is renewed
--
-- The key stays for some time after a lease, so that the next number is larger even if the
-- clock goes back, and for as long as MinInterval counts. Then numbers begin again with the
-- time in µs, which is larger than all before as long as the clock is not behind them: a
-- number is at most as many µs ahead of the clock as leases were given within one.

-- read returns what is known of a user, nil if nothing is, and nil and an error reply if
-- the key holds something else. ends is when the lease ends, nil if it was released.
local function read()
  local m, wrong = fields('number', 'since', 'grant', 'name', 'until', 'latest')
  if not m then return nil, wrong end
  local l = {number = whole(m[1]), since = whole(m[2]), grant = m[3], name = m[4],
    ends = whole(m[5]), latest = whole(m[6])}
  if not (l.number and l.since) or l.grant and not (l.name and l.ends and l.latest) then return foreign() end
  return l
end

local function held(l) return l and l.grant and l.ends > now end

-- keep remembers the user, if the last lease ended at ends.
local function keep(l, ends, interval, remember)
  expireAt(math.max(ends + remember, l.since + interval))
end
