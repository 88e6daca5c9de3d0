-- Creates sessions or changes some fields of them, and touches them.
--
-- Calls    head: idle limit, absolute limit, a time that does not matter here, in µs,
--          bytes that the fields may cost together, bytes that a field costs besides its
--          name and value
--          1 to create it, 0 to change it
--          digest: of the new session, or that the session must have
--          digest that replaces it, or empty
--          µs for which the replaced one may still read, or 0
--          user whom it is bound to from now on, or empty to leave that as it is
--          number of conditions, and for each
--          field, 1 if it must be there and 0 if not, value that it must have
--          number of changes, and for each
--          's', field, value to set it, 'd', field, '' to delete it, or 'a', field, number
--          to add to it; each field once
-- Result   of each: 1 done, 0 gone or another digest, -1 there already, -2 too large,
--          -3 a condition fails, -4 no number to add to, or too large a sum;
--          nothing is changed unless it is 1
-- Clock    the server's
-- Atomic   because between the check that the session is there and the writes
--          another caller could destroy it, and a write would bring it back

local most = 9007199254740991 -- the largest counter and time: exact in a Lua number

-- cost returns what a field takes now.
local function cost(key, field, each)
  local value = call('HSTRLEN', key, field)
  if value == 0 and call('HEXISTS', key, field) == 0 then return 0 end
  return #field + value + each
end

-- counter returns the number that a field holds, nil if it holds something else.
local function counter(key, field)
  local value = call('HGET', key, field)
  if not value then return 0 end
  if #value > 17 or value ~= '0' and not string.find(value, '^%-?[1-9]%d*$') then return nil end
  local n = number(value)
  if n >= -most and n <= most then return n end
end

-- sums makes the additions from first to last in ARGV what they come to, to be set. It
-- says false if one cannot be made.
local function sums(key, first, last)
  for i = first, last, 3 do
    if ARGV[i] == 'a' then
      local n = counter(key, ARGV[i + 1])
      n = n and n + number(ARGV[i + 2])
      if not n or n < -most or n > most then return false end
      ARGV[i], ARGV[i + 2] = 's', digits(n)
    end
  end
  return true
end

-- met says whether the conditions from first to last in ARGV are.
local function met(key, first, last)
  for i = first, last, 3 do
    local value = call('HGET', key, ARGV[i])
    if (ARGV[i + 1] == '1') ~= (value ~= false) or value and value ~= ARGV[i + 2] then return false end
  end
  return true
end

-- grown returns what the fields of a session will cost. The changes are from first to last
-- in ARGV.
local function grown(key, s, first, last, each)
  local size = s.size
  for i = first, last, 3 do
    local field = ARGV[i + 1]
    size = size - cost(key, field, each)
    if ARGV[i] == 's' then size = size + #field + #ARGV[i + 2] + each end
  end
  return size
end

-- rotate gives the session another digest; the one before may read for grace.
local function rotate(key, s, digest, grace)
  if grace > 0 then
    call('HSET', key, 'old', s.digest, 'grace', digits(now + grace))
  elseif s.old then
    call('HDEL', key, 'old', 'grace')
  end
  s.digest = digest
end

local function write(key, s, first, last)
  call('HSET', key, 'digest', s.digest, 'created', digits(s.created),
    'touched', digits(s.touched), 'size', digits(s.size))
  for i = first, last, 3 do
    if ARGV[i] == 's' then
      call('HSET', key, ARGV[i + 1], ARGV[i + 2])
    else
      call('HDEL', key, ARGV[i + 1])
    end
  end
end

-- commit does one call, which begins at from in ARGV. Every refusal comes before the first
-- write.
local function commit(key, from, first, last)
  local head, digest, replacing, user = ARGV[from], ARGV[from + 2], ARGV[from + 3], ARGV[from + 5]
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
  if not met(key, from + 7, first - 2) then return -3 end
  if not sums(key, first, last) then return -4 end
  local size = grown(key, s, first, last, each)
  if size > limit and size > s.size then return -2 end

  if replacing ~= '' then rotate(key, s, replacing, number(ARGV[from + 4])) end
  if user ~= '' then
    s.over = math.min(now + absolute, most)
    call('HSET', key, 'user', user, 'over', digits(s.over))
  end
  s.touched, s.size = now, size
  write(key, s, first, last)
  expire(key, s, idle, absolute)
  return 1
end

for i = 1, #KEYS do
  local first = at + 8 + 3 * number(ARGV[at + 6])
  local last = first - 1 + 3 * number(ARGV[first - 1])
  out[i] = commit(KEYS[i], at, first, last)
  at = last + 1
end
return out
