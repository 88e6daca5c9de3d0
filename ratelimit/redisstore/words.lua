-- words: how counters keep numbers. Words are seven bytes, little-endian, and hold up to
-- 2^53: hardly any text does. string.byte is in every Lua that runs Redis scripts, struct is
-- not.
local call, number, floor, fmod = redis.call, tonumber, math.floor, math.fmod
local byte, char, sub, format = string.byte, string.char, string.sub, string.format
local most = 9007199254740992

local function encode(v)
  local a = v % 256 v = (v - a) / 256
  local b = v % 256 v = (v - b) / 256
  local c = v % 256 v = (v - c) / 256
  local d = v % 256 v = (v - d) / 256
  local e = v % 256 v = (v - e) / 256
  local f = v % 256
  return char(a, b, c, d, e, f, (v - f) / 256)
end

-- pair returns the two words from a byte on, nil if they aren't there.
local function pair(s, from)
  local a, b, c, d, e, f, g, h, i, j, k, l, m, n = byte(s, from, from + 13)
  if not n then return nil end
  local v = a + b * 0x100 + c * 0x10000 + d * 0x1000000
    + e * 0x100000000 + f * 0x10000000000 + g * 0x1000000000000
  local w = h + i * 0x100 + j * 0x10000 + k * 0x1000000
    + l * 0x100000000 + m * 0x10000000000 + n * 0x1000000000000
  if v > most or w > most then return nil end
  return v, w
end
