-- block: what denied takes lead to; in Go it is blockPair, with the same answers.
--
-- Key     a string, 'lrd1' and then words: denials so far, and the end (us) of the time in
--         which they add up, or, once there are enough of them, of the block. It lives
--         as long.

local function load_block(key, r)
  local s = pcall('GET', key)
  local b = {key = key, now = r.now, denials = 0, ends = 0}
  if s then
    if type(s) ~= 'string' or #s ~= 18 or sub(s, 1, 4) ~= 'lrd1' then error(foreign) end
    b.denials, b.ends, b.there = decode(s, 4), decode(s, 11), true
  end
  return b
end

-- left returns how long the block lasts, 0 if there is none.
local function left(b, r)
  if not b or b.denials < r.after or b.now >= b.ends then return 0 end
  return b.ends - b.now
end

-- note counts a denial, and returns how long the block lasts, which it does not prolong.
local function note(b, r)
  if not b then return 0 end
  if b.now >= b.ends then b.denials, b.ends, b.dirty = 0, b.now + r.per, true end
  if b.denials < r.after then
    b.denials, b.dirty = b.denials + 1, true
    if b.denials == r.after then b.ends = b.now + r.duration end
  end
  return left(b, r)
end

-- notes counts denials of one moment as note does each of them. It returns after how many of
-- them the block holds, and for how long then.
local function notes(b, r, denials)
  if not b then return denials, 0 end
  for i = 1, math.min(denials, r.after) do
    local hold = note(b, r)
    if hold > 0 then return i - 1, hold end
  end
  return denials, 0
end

local function unblock(b)
  if b then
    call('DEL', b.key)
    b.denials, b.ends, b.dirty, b.there = 0, 0, nil, nil
  end
end

local function save_block(b)
  local lasts = digits(math.max(1, ceil(b.ends - b.now, 1000)))
  if b.dirty then
    call('SET', b.key, 'lrd1' .. encode(b.denials) .. encode(b.ends), 'PX', lasts)
  elseif b.there and call('PTTL', b.key) < 0 then
    call('PEXPIRE', b.key, lasts)
  end
end
