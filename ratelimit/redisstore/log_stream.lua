-- This encoding stores a log in a stream. The ID of an entry is at-sum. Its only field is n.

local function event(entry)
  local at, sum = match(entry[1], '^(%d+)-(%d+)$')
  local n = entry[2][1] == 'n' and match(entry[2][2], '^%d+$')
  return check_event(number(at), number(sum), number(n))
end

local function newest(key)
  local e = try('XREVRANGE', key, '+', '-', 'COUNT', 1)
  if e.err then fail(e) end
  if not e[1] then return 0, 0 end
  return event(e[1])
end

local function after(key, at)
  local e = call('XRANGE', key, digits(max(at, -1) + 1), '+', 'COUNT', 1)[1]
  if e then return event(e) end
end

local function reached(key, sum, cut, at)
  -- The search begins at the first entry, because XREVRANGE from an earlier ID would scan the whole stream.
  local first = event(call('XRANGE', key, digits(max(cut, -1) + 1), '+', 'COUNT', 1)[1])
  local low, high = first, at
  while low < high do
    local middle = low + floor((high - low) / 2) -- the sum low + high may exceed 2^53
    local t, s = event(call('XREVRANGE', key, digits(middle), '-', 'COUNT', 1)[1])
    if s >= sum then high = t else low = middle + 1 end
  end
  return high
end

local function append(key, at, sum, n, cut)
  local id = try('XADD', key, 'MINID', '=', digits(max(cut, -1) + 1),
    digits(at) .. '-' .. digits(sum), 'n', digits(n))
  if type(id) == 'table' then error(match(id.err, 'smaller') and foreign or id.err, 0) end
end

-- change writes a new stream, because a stream does not accept entries before its newest entry.
local function change(key, from, f)
  local entries, kept = call('XRANGE', key, '-', '+'), {}
  for i = 1, #entries do
    local at, sum, n = event(entries[i])
    if at >= from then sum, n = f(at, sum, n) end
    if n > 0 then kept[#kept + 1] = {digits(at) .. '-' .. digits(sum), digits(n)} end
  end
  call('DEL', key)
  for i = 1, #kept do call('XADD', key, kept[i][1], 'n', kept[i][2]) end
end
