-- prelude: what the parts of the script share. The layout is described in buckets.lua.

local call, floor, number = redis.call, math.floor, tonumber
local byte, char, sub = string.byte, string.char, string.sub

local mark, most = 'lrb1', 9007199254740992
local epoch_at, total_at, ring_at = 11, 18, 25

local function decode(s, at)
  local a, b, c, d, e, f, g = byte(s, at + 1, at + 7)
  return a + b * 0x100 + c * 0x10000 + d * 0x1000000
    + e * 0x100000000 + f * 0x10000000000 + g * 0x1000000000000
end

local function encode(v)
  local a = v % 256 v = (v - a) / 256
  local b = v % 256 v = (v - b) / 256
  local c = v % 256 v = (v - c) / 256
  local d = v % 256 v = (v - d) / 256
  local e = v % 256 v = (v - e) / 256
  local f = v % 256
  return char(a, b, c, d, e, f, (v - f) / 256)
end

-- The time in us; 0 asks for the server's clock, which is read once.
local now = number(ARGV[1])
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
