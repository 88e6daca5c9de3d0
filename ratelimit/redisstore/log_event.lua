-- The events of a log, in both encodings.
--
-- An event is at, sum, n: n units were charged at this time; sum is the total including them. The units
-- in a window are the difference of two sums, and a search finds the time at which units leave the
-- window. Events are in order of time: if the clock went back, a charge has the newest event's time.

-- check_event returns an event. It raises foreign if the numbers are not an event.
local function check_event(at, sum, n)
  if not (at and sum and n) or at % 1 ~= 0 or at > max_count or sum > max_count or n < 1 or n > sum then error(foreign, 0) end
  return at, sum, n
end
