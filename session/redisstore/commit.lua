-- Creates sessions or changes some fields of them, and touches them.
--
-- Calls    head: idle limit, absolute limit, a time that does not matter here, in µs,
--          bytes that the fields may cost together, bytes that a field costs besides its
--          name and value
--          1 to create it, 0 to change it
--          digest: of the new session, or that the session must have
--          digest that replaces it, or empty
--          number of changes, and for each
--          's', field, value to set it, or 'd', field, '' to delete it; each field once
-- Result   of each: 1 done, 0 gone or another digest, -1 there already, -2 too large;
--          nothing is changed unless it is 1
-- Clock    the server's
-- Atomic   because between the check that the session is there and the writes
--          another caller could destroy it, and a write would bring it back

-- cost returns what a field takes now.
local function cost(key, field, each)
  local value = call('HSTRLEN', key, field)
  if value == 0 and call('HEXISTS', key, field) == 0 then return 0 end
  return #field + value + each
end

-- grown returns what the fields of a session will cost. The changes are from to last in
-- ARGV.
local function grown(key, s, from, last, each)
  local size = s.size
  for i = from, last, 3 do
    local field = ARGV[i + 1]
    size = size - cost(key, field, each)
    if ARGV[i] == 's' then size = size + #field + #ARGV[i + 2] + each end
  end
  return size
end

-- commit does one call, which begins at from in ARGV. Every refusal comes before the first
-- write.
local function commit(key, from, last)
  local head, digest, rotate = ARGV[from], ARGV[from + 2], ARGV[from + 3]
  local idle, absolute = limits(head)
  local limit, each = number(ARGV[heads[head] + 4]), number(ARGV[heads[head] + 5])
  local s, wrong = read(key)
  if wrong then return wrong end
  s = alive(key, s, idle, absolute)
  if ARGV[from + 1] == '1' then
    if s then return -1 end
    s = {digest = digest, created = now, size = 0}
  elseif not s or s.digest ~= digest then
    return 0
  end
  local size = grown(key, s, from + 5, last, each)
  if size > limit and size > s.size then return -2 end

  if rotate ~= '' then s.digest = rotate end
  s.touched = now
  call('HSET', key, 'digest', s.digest, 'created', digits(s.created),
    'touched', digits(s.touched), 'size', digits(size))
  for i = from + 5, last, 3 do
    if ARGV[i] == 's' then
      call('HSET', key, ARGV[i + 1], ARGV[i + 2])
    else
      call('HDEL', key, ARGV[i + 1])
    end
  end
  expire(key, s, idle, absolute)
  return 1
end

for i = 1, #KEYS do
  local last = at + 4 + 3 * number(ARGV[at + 4])
  out[i] = commit(KEYS[i], at, last)
  at = last + 1
end
return out
