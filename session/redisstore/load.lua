-- Returns a session that has a given digest or user. It does not use record.lua, because it runs more often than the
-- other scripts, and each function of record.lua would cost time in every call.
--
-- KEYS    the session, a hash as record.lua describes it
-- ARGV    idle limit, absolute limit, time since the last touch after which it is touched again, all in µs
--         digest that it must have, or have had until its grace is over; or empty
--         if there is no digest, the user to whom it must be bound, and the session is not touched;
--         otherwise the device to record with a touch if it is bound, or empty or missing
--         limit of remembered sessions in µs; 0 or missing if they have the limits of others
-- Result  {created in µs, touched in µs, 1 if the digest is the old one, plus 2 if it is remembered, user or '',
--         {name, value, …} of its fields, its device if there is one}; {0} if it does not exist, has expired, or has
--         another digest or user
-- Clock   the server's
-- Atomic  because between the read and the touch another caller could destroy the session, and the touch would leave
--         half a record

local key, digest = KEYS[1], ARGV[4]
local hash = redis.pcall('HGETALL', key)
if hash.err then return digest ~= '' and hash or {0} end
if #hash == 0 then return {0} end
local s, fields, n = {}, {}, 0
for i = 1, #hash, 2 do
  local name = hash[i]
  if string.byte(name) == 58 then -- a colon
    fields[n + 1], fields[n + 2] = name, hash[i + 1]
    n = n + 2
  else
    s[name] = hash[i + 1]
  end
end
if digest == '' and s.user ~= ARGV[5] then return {0} end

-- whole returns the number in v, or nil if v is not a whole number.
local function whole(v)
  if v and #v <= 16 and string.find(v, '^%d+$') then return tonumber(v) end
end
local created, touched, grace, over = whole(s.created), whole(s.touched), whole(s.grace), whole(s.over)
if not (s.digest and #s.digest == 32 and created and touched and whole(s.size)
    and (not s.old or #s.old == 32 and grace) and (not s.user or over)) then
  return digest ~= '' and redis.error_reply('FOREIGN the key holds another hash') or {0}
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local idle, absolute, long = ARGV[1], ARGV[2], ARGV[6]
if s.remember == '1' and long and long ~= '0' then idle, absolute = long, long end
local last = math.min(created + absolute, over or math.huge)
if math.min(touched + idle, last) <= now then
  redis.call('UNLINK', key)
  return {0}
end
local flags = s.remember == '1' and 2 or 0
if digest ~= '' and s.digest ~= digest then
  if s.old ~= digest or grace <= now then return {0} end
  flags = flags + 1
elseif digest ~= '' and now - touched >= tonumber(ARGV[3]) then
  touched = now
  redis.call('HSET', key, 'touched', string.format('%.0f', now))
  redis.call('PEXPIREAT', key, string.format('%.0f', math.ceil(math.min(now + idle, last) / 1000)))
  if s.user and (ARGV[5] or '') ~= '' then
    s.device = ARGV[5]
    redis.call('HSET', key, 'device', s.device)
  end
end
return {created, touched, flags, s.user or '', fields, s.device}
