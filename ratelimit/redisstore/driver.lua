-- driver: runs a group of ops. First every take of a group is checked, together with what the
-- group charges before it; then everything is done in order, or, if a take was denied,
-- only what changes nothing. What a counter is, it leaves to the algorithm. Every key is
-- read before the first write, so that a foreign one fails the whole group.

local made = {}

-- algorithm returns the functions of one:
--   load(c, r, read)  reads a counter
--   longer(c, r)      takes note of another rule that shares the counter
--   fits(c, r, n)     whether n more units can be counted at all
--   passes(c, r, n)   whether a take of n is allowed
--   check(c, r, n)    what it gets: 1 or 0, what remains, us to retry, us to reset
--   charge(c, r, n, ahead)  counts n units, which fit; returns where, and leaves c.life.
--                     Units that may be spent so many us later, unless the algorithm has no
--                     need to know
--   count(c, over)    units of an interval
--   refund(c, r, n, where, life)  whether it could
--   reset(c)          forgets the counter
--   save(c)           writes what changed and leaves no key without a TTL
local function algorithm(name)
  if not made[name] then made[name] = make[name]() end
  return made[name]
end

-- open finds the counters and blocks of a group's ops.
local function open(ops)
  local counters, blocks = {}, {}
  for i = 1, #ops do
    local op = ops[i]
    local r, c = op.rule, counters[op.key]
    op.algorithm = algorithm(r.algorithm)
    if c then
      op.algorithm.longer(c, r)
    else
      c = {key = KEYS[key + op.key], now = r.now, pending = 0, save = op.algorithm.save}
      op.algorithm.load(c, r, op.read)
      counters[op.key] = c
    end
    op.counter = c
    if r.after then
      blocks[op.blocks] = blocks[op.blocks] or load_block(KEYS[key + op.blocks], r)
      op.block = blocks[op.blocks]
    end
  end
  return counters, blocks
end

-- check looks for takes that are denied. It returns whether there are any, or nil if a
-- count would leave 2^53.
local function check(ops)
  local denied = false
  for i = 1, #ops do
    local op = ops[i]
    if op.kind == 'take' or op.kind == 'add' then
      local c, r = op.counter, op.rule
      c.pending = c.pending + op.n
      op.pending = c.pending
      if not op.algorithm.fits(c, r, c.pending) then return nil end
      op.violated = op.kind == 'take' and (left(op.block, r) > 0 or not op.algorithm.passes(c, r, c.pending))
      denied = denied or op.violated
    end
  end
  return denied
end

-- say answers an op with what a take of n would get, and nothing passes during a block,
-- which lasts for hold. Without a verdict, that is whether it passes. An add in a denied
-- group may be of more than ever passes; it has no wait, but never one below 0. A denial
-- was not charged anywhere: in place of where, it tells what is left of the block.
local function say(op, verdict, n, hold, count, where, life)
  local passes, remaining, retry, reset = op.algorithm.check(op.counter, op.rule, n)
  if hold > 0 then passes, remaining = 0, 0 end
  verdict = verdict or 2 * passes - 1
  if verdict < 0 then where = hold end
  answer(verdict, remaining, math.max(retry, hold), math.max(reset, hold), count, where, life)
end

-- run runs a group.
local function run(ops)
  local counters, blocks = open(ops)
  local denied = check(ops)
  if denied == nil then
    for _ = 1, #ops do answer(-2, 0, 0, 0, 0, 0, 0) end
    return
  end
  for i = 1, #ops do
    local op = ops[i]
    local kind, c, a, r, n, b = op.kind, op.counter, op.algorithm, op.rule, op.n, op.block
    if kind == 'count' then
      answer(1, 0, 0, 0, a.count(c, op.over), 0, 0)
    elseif kind == 'peek' then
      say(op, nil, n, left(b, r), 0, 0, 0)
    elseif denied and op.pending then
      say(op, op.violated and -1 or 0, op.pending, op.violated and note(b, r) or 0, 0, 0, 0)
    elseif denied then
      answer(0, 0, 0, 0, 0, 0, 0)
    elseif kind == 'refund' then
      say(op, a.refund(c, r, n, op.over, op.life) and 1 or 0, 1, left(b, r), 0, 0, 0)
    elseif kind == 'reset' then
      a.reset(c)
      unblock(b)
      say(op, 1, 1, 0, 0, 0, 0)
    else
      local where = a.charge(c, r, n, kind == 'take' and op.over or 0)
      say(op, 1, 1, left(b, r), kind == 'add' and a.count(c, op.over) or 0, where, c.life)
    end
  end
  for _, c in pairs(counters) do c.save(c) end
  for _, b in pairs(blocks) do save_block(b) end
end

-- series does an op that is a take so many times. It returns nothing if a count would leave
-- 2^53, or how many passed, what remains, us until the next unit passes after the last of
-- them, us until n do after a denial, us to reset, where they were charged and in which
-- life, and how many denials there are before the block holds, and for how long it does.
local function series(op, times)
  local counters, blocks = open({op})
  local c, b, a, r, n = op.counter, op.block, op.algorithm, op.rule, op.n
  local passed, retry, where, life = 0, 0, 0, 0
  local _, remaining, wait, reset = a.check(c, r, n)
  if left(b, r) == 0 then passed = math.min(times, (remaining - fmod(remaining, n)) / n) end
  if passed > 0 then
    if not a.fits(c, r, passed * n) then return nil end
    where, life = a.charge(c, r, passed * n), c.life
    _, remaining, retry, reset = a.check(c, r, 1)
    if passed < times then _, _, wait = a.check(c, r, n) end
  end
  local free, hold = 0, 0
  if passed < times then free, hold = notes(b, r, times - passed) end
  for _, x in pairs(counters) do x.save(x) end
  for _, x in pairs(blocks) do save_block(x) end
  return passed, remaining, retry, wait, reset, where, life, free, hold
end
