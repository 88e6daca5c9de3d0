-- A window is a period of the calendar. Redis has no calendar, so the client sends the windows around the
-- time of its own clock, and the server's time chooses one of them.
--
-- Rule       limit; the time at which a window begins; the ends of this window and of the two after it

local rule_size = 5

local function rule(at)
  local r, begun = {limit = number(ARGV[at])}, now >= number(ARGV[at + 1])
  for i = at + 4, at + 2, -1 do
    local ends = number(ARGV[i])
    if begun and now < ends then r.ends = ends end
  end
  return r
end
