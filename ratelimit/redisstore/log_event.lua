-- An event of a log consists of three numbers in both encodings: n units were charged at the time at, and
-- sum is the total including them. The number of units in a window is the difference of two sums, and a
-- binary search finds the time at which units leave the window. Events are in order of time: if the clock
-- has gone back, a charge gets the time of the newest event.

-- check_event returns its arguments. It raises foreign if they are not an event.
local function check_event(at, sum, n)
  if not (at and sum and n) or at % 1 ~= 0 or at > max_count or sum > max_count or n < 1 or n > sum then error(foreign, 0) end
  return at, sum, n
end
