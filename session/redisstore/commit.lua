-- Creates a session or changes some of its fields, and touches it.
--
-- KEYS    the session
-- ARGV    idle limit, absolute limit, in µs
--         maximum bytes of all fields, bytes that a field costs besides its name and value
--         1 to create the session, 0 to change it
--         digest of the new session, or digest that the session must have
--         digest that replaces it, or empty
--         µs for which the replaced digest may still read, or 0
--         user to whom the session is bound from now on, or empty to leave the user unchanged
--         limit of remembered sessions in µs, or 0 if they have the limits of others
--         1 if the session is remembered from now on and 0 if not; without effect if no user is given
--         device to record if the session is bound to a user, or empty
--         number of conditions, and for each
--         field, 1 if it must exist and 0 if not, value that it must have
--         to the end, for each change
--         's', field, value to set it, 'd', field, '' to delete it, or 'a', field, number to add to it;
--         each field once
-- Result  {1} done, {0} missing or another digest, {-1} exists already, {-2} too large, {-3} a condition fails,
--         {-4} not a number, or its sum is out of range; nothing is changed unless it is 1
-- Clock   the server's
-- Atomic  because another caller could destroy the session between the check that it exists and the writes, which
--         would then bring it back

local max_number = 2^53 - 1 -- the largest counter and time
local idle, absolute, limit, each = number(ARGV[1]), number(ARGV[2]), number(ARGV[3]), number(ARGV[4])
local digest, replacing, grace, user = ARGV[6], ARGV[7], number(ARGV[8]), ARGV[9]
local long, remember, device = number(ARGV[10]), ARGV[11] == '1', ARGV[12]
local conditions = 14 -- index of the first condition
local changes = conditions + 3 * number(ARGV[13]) -- index of the first change

-- ends returns when the session expires, in µs.
local function ends(s)
  local last = s.over or math.huge
  if s.remember and long > 0 then return math.min(s.created + long, last) end
  return math.min(s.touched + idle, s.created + absolute, last)
end

-- cost returns the size of a field that is stored now, in bytes.
local function cost(field)
  local value = call('HSTRLEN', key, field)
  if value == 0 and call('HEXISTS', key, field) == 0 then return 0 end
  return #field + value + each
end

-- counter returns the number that a field holds, or nil if it holds something else.
local function counter(field)
  local value = call('HGET', key, field)
  if not value then return 0 end
  if #value > 17 or value ~= '0' and not string.find(value, '^%-?[1-9]%d*$') then return nil end
  local n = number(value)
  if n >= -max_number and n <= max_number then return n end
end

-- The script returns an error only before its first write.
local s, wrong = read()
if wrong then return wrong end
if s and ends(s) <= now then
  call('UNLINK', key)
  s = nil
end
if ARGV[5] == '1' then
  if s then return {-1} end
  s = {digest = digest, created = now, size = 0}
elseif not s or s.digest ~= digest then
  return {0}
end
for i = conditions, changes - 1, 3 do
  local value = call('HGET', key, ARGV[i])
  if (ARGV[i + 1] == '1') ~= (value ~= false) or value and value ~= ARGV[i + 2] then return {-3} end
end
local size = s.size
for i = changes, #ARGV, 3 do
  local field = ARGV[i + 1]
  if ARGV[i] == 'a' then -- replace the addition by a change that sets the sum
    local n = counter(field)
    n = n and n + number(ARGV[i + 2])
    if not n or n < -max_number or n > max_number then return {-4} end
    ARGV[i], ARGV[i + 2] = 's', digits(n)
  end
  size = size - cost(field)
  if ARGV[i] == 's' then size = size + #field + #ARGV[i + 2] + each end
end
if size > limit and size > s.size then return {-2} end

if replacing ~= '' then
  if grace > 0 then
    call('HSET', key, 'old', s.digest, 'grace', digits(now + grace))
  elseif s.old then
    call('HDEL', key, 'old', 'grace')
  end
  s.digest = replacing
end
if user ~= '' then
  if remember then
    call('HSET', key, 'remember', 1)
  elseif s.remember then
    call('HDEL', key, 'remember')
  end
  s.remember = remember
  s.over = math.min(now + (remember and long > 0 and long or absolute), max_number)
  call('HSET', key, 'user', user, 'over', digits(s.over))
end
if device ~= '' and (s.user or user ~= '') then call('HSET', key, 'device', device) end
s.touched = now
call('HSET', key, 'digest', s.digest, 'created', digits(s.created), 'touched', digits(now), 'size', digits(size))
for i = changes, #ARGV, 3 do
  if ARGV[i] == 's' then
    call('HSET', key, ARGV[i + 1], ARGV[i + 2])
  else
    call('HDEL', key, ARGV[i + 1])
  end
end
expire_at(ends(s))
return {1}
