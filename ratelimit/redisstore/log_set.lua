-- This encoding stores a log in a sorted set. The score of a member is at. The member is sum and n. The sum
-- has 16 digits, so that events with the same time are in order.

local function event(member, score)
  local sum, n = match(member, '^(%d+) (%d+)$')
  return check_event(number(score), number(sum), number(n))
end

local function member(sum, n) return format('%016.0f %.0f', sum, n) end

local function newest(key)
  local e = try('ZRANGE', key, -1, -1, 'WITHSCORES')
  if e.err then fail(e) end
  if not e[1] then return 0, 0 end
  return event(e[1], e[2])
end

local function after(key, at)
  local e = call('ZRANGEBYSCORE', key, '(' .. digits(at), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if e[1] then return event(e[1], e[2]) end
end

local function reached(key, sum)
  local low, high = 0, call('ZCARD', key) - 1
  while low < high do
    local middle = floor((low + high) / 2)
    local _, s = event(call('ZRANGE', key, middle, middle)[1], 0)
    if s >= sum then high = middle else low = middle + 1 end
  end
  local e = call('ZRANGE', key, low, low, 'WITHSCORES')
  return (event(e[1], e[2]))
end

-- append adds the event first, because a full Redis only refuses the first write of a script.
local function append(key, at, sum, n, cut)
  call('ZADD', key, digits(at), member(sum, n))
  call('ZREMRANGEBYSCORE', key, '-inf', digits(cut))
end

local function change(key, at, f)
  local events = call('ZRANGEBYSCORE', key, digits(at), '+inf', 'WITHSCORES')
  for i = 1, #events, 2 do
    local sum, n = f(event(events[i], events[i + 1]))
    events[i] = n > 0 and member(sum, n)
  end
  call('ZREMRANGEBYSCORE', key, digits(at), '+inf')
  for i = 1, #events, 2 do
    if events[i] then call('ZADD', key, events[i + 1], events[i]) end
  end
end
