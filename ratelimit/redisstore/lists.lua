-- lists: what the scripts of lists of takes share. The numbers of a key are n and how many
-- times, and what isn't given is 1. All takes of a script are of one moment, and those of
-- one key are one after another: as they are equal, the first so many of them pass.
--
-- Reply   for each key so many bytes as the algorithm says. How many takes passed is four
--         bytes, little-endian; as is what was done to a key at all if they are the
--         largest, the key is something else's, or the next, a count would leave 2^53.

local takes -- (r) does a list of r.keys keys, and puts what they get
local none_passed, one_passed = '\0\0\0\0', '\1\0\0\0'
local foreign_passed, overflow_passed = '\255\255\255\255', '\254\255\255\255'

local function put(a, b)
  out[o + 1], out[o + 2] = a, b
  o = o + 2
end

local function numbers(r, i)
  local from = at + r.mode * (i - 1)
  return number(ARGV[from]), r.mode > 1 and number(ARGV[from + 1]) or 1
end

local function four(v)
  local a = v % 256 v = (v - a) / 256
  local b = v % 256 v = (v - b) / 256
  local c = v % 256
  return char(a, b, c, (v - c) / 256)
end

-- quotient divides integers that aren't negative, and exactly.
local function quotient(a, b) return (a - fmod(a, b)) / b end

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

-- What takes of buckets and logs get, after how many passed: what remains, us until the next
-- unit passes if one did, us until n do if one was denied, us to reset, and where and in
-- which life they were charged.
local zero = '\0\0\0\0\0\0\0'
local zeros, nothing = zero .. zero, string.rep(zero, 6)

local function put_all(passed, remaining, retry, wait, reset, where, life)
  put(four(passed), encode(remaining))
  put(encode(retry), encode(wait))
  put(encode(reset), encode(where))
  put(encode(life), '')
end

-- slowly does the takes of a key in which there is anything special.
local series
local function slowly(r, i, n, times)
  if not series then series = select(2, driver()) end
  local op = {rule = r, kind = 'take', key = i, n = n}
  local ok, passed, remaining, retry, wait, reset, where, life = protected(series, op, times)
  if not ok then
    if passed ~= foreign then error(passed, 0) end
    put(foreign_passed, nothing)
  elseif not passed then
    put(overflow_passed, nothing)
  else
    put_all(passed, remaining, retry, wait, reset, where, life)
  end
end

-- each does the keys of a list, quickly(i, name, n, times) those in which nothing is special:
-- it says whether it did. It may raise foreign before its first write.
local function each(r, quickly)
  local i, n, times = 0, 1, 1
  local function rest()
    while i < r.keys do
      i = i + 1
      if r.mode > 0 then n, times = numbers(r, i) end
      if not quickly(i, KEYS[key + i], n, times) then slowly(r, i, n, times) end
    end
  end
  repeat
    local ok, err = protected(rest)
    if not ok then
      if err ~= foreign then error(err, 0) end
      slowly(r, i, n, times)
    end
  until ok
end
