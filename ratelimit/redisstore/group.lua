-- group: the end of a script that runs a group of ops on one subject. First every take is
-- checked, together with what the group charges before it. Then everything is done in order,
-- or, if a take was denied, only what changes nothing.
--
-- KEYS   the counters, and the blocks of rules that have one
-- ARGV   now, and then for each op
--          kind, number of its counter in KEYS, number of its block or 0,
--          n, over, life, denials that lead to a block, us within which they do, us of the block,
--          algorithm, the rule
--        over is an interval; of a refund, where it was charged; of a take, how many us later
--        the units may be spent
-- Reply  now, status, and then for each op verdict, count, us that its block lasts, and what the
--        algorithm shows. Status is 0, -1 if a key is something else's, -2 if a counter would
--        leave 2^53; without 0 nothing was done. The verdict is 1 done, 0 not done, -1 denied by
--        its own rule, -2 not tried since the group was denied
-- Block  two integers: denials so far, and the end of the time in which they add up or, once
--        there are enough of them, of the block. It lives as long
-- Atomic because nothing else runs between check and charge

local ops, at = {}, 2
while at <= #ARGV do
  local algorithm = algorithms[ARGV[at + 9]]
  ops[#ops + 1] = {
    kind = ARGV[at], key = KEYS[number(ARGV[at + 1])], block = KEYS[number(ARGV[at + 2])],
    n = number(ARGV[at + 3]), over = number(ARGV[at + 4]), life = number(ARGV[at + 5]),
    after = number(ARGV[at + 6]), within = number(ARGV[at + 7]), lasts = number(ARGV[at + 8]),
    algorithm = algorithm, rule = algorithm.rule(at + 10),
  }
  at = at + 10 + algorithm.size
end

local function add(v)
  o = o + 1
  out[o] = v
end

local function charges(op) return op.n > 0 and (op.kind == 'take' or op.kind == 'add') end

-- block_left returns how long an op's block lasts, 0 if there is none.
local function block_left(op)
  if not op.block then return 0 end
  local denials, ends = pair(op.block)
  if not denials or denials < op.after or ends <= now then return 0 end
  return ends - now
end

-- count_denial counts a denial, and returns how long the block lasts, which it does not prolong. If Redis
-- is full or may not be written to, it is a denial all the same.
local function count_denial(op)
  if not op.block then return 0 end
  local denials, ends = pair(op.block)
  if not denials or ends <= now then denials, ends = 0, now + op.within end
  if denials < op.after then
    denials = denials + 1
    if denials == op.after then ends = now + op.lasts end
    try('SET', op.block, format('%.0f %.0f', denials, ends), 'PX', digits(max(1, ceil((ends - now) / 1000))))
  end
  return block_left(op)
end

-- check reports whether takes are denied and whether a counter would leave 2^53. It reads every
-- key.
local function check()
  local pending, denied, overflow = {}, false, false
  for _, op in ipairs(ops) do
    local a, r = op.algorithm, op.rule
    local room, s, t, u = a.read(op.key, r)
    local held = block_left(op)
    if charges(op) then
      op.pending = (pending[op.key] or 0) + op.n
      pending[op.key] = op.pending
      if op.kind == 'take' then
        op.violated = held > 0 or op.pending > room
        denied = denied or op.violated
      end
      overflow = overflow or not op.violated and not a.fits(op.key, r, op.pending, s, t, u)
    end
  end
  return denied, overflow
end

-- answer adds the result of an op: just is 1 if it has charged units, n how many it would take.
local function answer(op, verdict, count, held, just, n, s, t, u)
  add(verdict)
  add(count)
  add(held)
  op.algorithm.show(op.key, op.rule, just, n, s, t, u)
end

local run = {
  count = function(op, _, ...)
    answer(op, 1, op.algorithm.count(op.key, op.rule, op.over, ...), 0, 0, 0, ...)
  end,

  peek = function(op, room, ...)
    local held = block_left(op)
    local passes = held == 0 and op.n <= room
    answer(op, passes and 1 or -1, 0, held, 0, op.n, ...)
  end,

  take = function(op, _, ...)
    answer(op, 1, 0, 0, 1, 0, op.algorithm.charge(op.key, op.rule, op.n, op.over, ...))
  end,

  add = function(op, _, ...)
    local a = op.algorithm
    if op.n == 0 then return answer(op, 1, a.count(op.key, op.rule, op.over, ...), block_left(op), 0, 1, ...) end
    local s, t, u = a.charge(op.key, op.rule, op.n, 0, ...)
    answer(op, 1, a.count(op.key, op.rule, op.over, s, t, u), block_left(op), 1, 0, s, t, u)
  end,

  refund = function(op, _, ...)
    local back, s, t, u = op.algorithm.refund(op.key, op.rule, op.n, op.over, op.life, ...)
    answer(op, back and 1 or 0, 0, block_left(op), 0, 1, s, t, u)
  end,

  reset = function(op)
    call('DEL', op.key)
    if op.block then call('DEL', op.block) end
    answer(op, 1, 0, 0, 0, 1, select(2, op.algorithm.read(op.key, op.rule)))
  end,
}

-- deny answers an op of a group that was denied.
local function deny(op, room, ...)
  if op.kind == 'count' or op.kind == 'peek' then
    run[op.kind](op, room, ...)
  elseif op.pending then
    answer(op, op.violated and -1 or 0, 0, op.violated and count_denial(op) or 0, 0, op.pending, ...)
  else
    answer(op, -2, 0, 0, 0, 0, ...)
  end
end

local function all()
  local denied, overflow = check()
  if overflow and not denied then return add(-2) end
  add(0)
  for _, op in ipairs(ops) do
    local f = denied and deny or run[op.kind]
    f(op, op.algorithm.read(op.key, op.rule))
  end
end

local done, err = pcall(all)
if done then return out end
if err == foreign then return {now, -1} end
return refusal(err)
