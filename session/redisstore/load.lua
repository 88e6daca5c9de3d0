-- Returns sessions and counts that as use.
--
-- Calls    head: idle limit, absolute limit, it is touched so long after it was last
--          touched, all in µs
--          digest that it must have
-- Result   of each: created in µs, {name, value, …} of its fields; or
--          0, 0 if it is unknown or over, or has another digest
-- Clock    the server's
-- Atomic   because between the read and the touch another caller could destroy
--          the session, and the touch would leave a key that is none

local function load(key, idle, absolute, touch, digest)
  local hash = redis.pcall('HGETALL', key)
  if hash.err then return hash, 0 end
  if #hash == 0 then return 0, 0 end
  local own, fields, n = {}, {}, 0
  for i = 1, #hash, 2 do
    local name = hash[i]
    if string.byte(name) == 58 then
      fields[n + 1], fields[n + 2] = name, hash[i + 1]
      n = n + 2
    else
      own[name] = hash[i + 1]
    end
  end
  local s, wrong = session(own.digest, own.created, own.touched, own.size)
  if wrong then return wrong, 0 end
  s = alive(key, s, idle, absolute)
  if not s or s.digest ~= digest then return 0, 0 end
  if now - s.touched >= touch then
    s.touched = now
    call('HSET', key, 'touched', digits(now))
    expire(key, s, idle, absolute)
  end
  return s.created, fields
end

for i = 1, #KEYS do
  local idle, absolute, touch = limits(ARGV[at])
  out[2 * i - 1], out[2 * i] = load(KEYS[i], idle, absolute, touch, ARGV[at + 1])
  at = at + 2
end
return out
