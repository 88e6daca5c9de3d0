-- group: the last part of a script that runs a group of ops on one subject. It first checks every
-- take, including the units that earlier ops of the group charge. If all takes pass, it runs all ops
-- in order. If a take is denied, it runs only the ops that change nothing.
--
-- KEYS    the counters, and the blocks of rules that have one
-- ARGV    now, and then for each op:
--           kind, index of its counter in KEYS, index of its block or 0,
--           n, interval, generation,
--           denials that start a block, us in which they are counted, us of the block,
--           algorithm, the rule's numbers
--         interval is the time of the charge for a refund, and the prepaid us for a take
-- Reply   now, status, and then for each op verdict, count, the rest of its block in us, and the
--         algorithm's report. The status is 0, -1 if a key holds a foreign value, or -2 if a counter
--         would exceed 2^53. With another status than 0 nothing was changed. The verdict is 1 done,
--         0 not done, -1 denied by the op's own rule, -2 not tried because the group was denied
-- Block   two integers: the number of denials, and the end of the time in which they are counted or,
--         after enough denials, the end of the block. The key expires then
-- Clock   Redis TIME, unless a test sends its own
-- Atomic: Redis runs nothing else between check and charge

local ops, at = {}, 2
while at <= #ARGV do
  local algorithm = algorithms[ARGV[at + 9]]
  ops[#ops + 1] = {
    kind = ARGV[at], key = KEYS[number(ARGV[at + 1])], block = KEYS[number(ARGV[at + 2])],
    n = number(ARGV[at + 3]), interval = number(ARGV[at + 4]), generation = number(ARGV[at + 5]),
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

-- block_left returns the rest of an op's block in us, 0 if there is no block.
local function block_left(op)
  if not op.block then return 0 end
  local denials, ends = pair(op.block)
  if not denials or denials < op.after or ends <= now then return 0 end
  return ends - now
end

-- count_denial counts a denial and returns the rest of the block, which a denial does not prolong. If
-- Redis is full or read-only, the denial is not counted, and the take is denied all the same.
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

-- check reports whether takes are denied, and whether a counter would exceed 2^53. It reads every
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

-- reply adds the result of an op. charged is 1 if the op has charged units, n the units that it would take.
local function reply(op, verdict, count, held, charged, n, s, t, u)
  add(verdict)
  add(count)
  add(held)
  op.algorithm.report(op.key, op.rule, charged, n, s, t, u)
end

local run = {
  count = function(op, _, ...)
    reply(op, 1, op.algorithm.count(op.key, op.rule, op.interval, ...), 0, 0, 0, ...)
  end,

  peek = function(op, room, ...)
    local held = block_left(op)
    local passes = held == 0 and op.n <= room
    reply(op, passes and 1 or -1, 0, held, 0, op.n, ...)
  end,

  take = function(op, _, ...)
    reply(op, 1, 0, 0, 1, 0, op.algorithm.charge(op.key, op.rule, op.n, op.interval, ...))
  end,

  add = function(op, _, ...)
    local a = op.algorithm
    if op.n == 0 then return reply(op, 1, a.count(op.key, op.rule, op.interval, ...), block_left(op), 0, 1, ...) end
    local s, t, u = a.charge(op.key, op.rule, op.n, 0, ...)
    reply(op, 1, a.count(op.key, op.rule, op.interval, s, t, u), block_left(op), 1, 0, s, t, u)
  end,

  refund = function(op, _, ...)
    local back, s, t, u = op.algorithm.refund(op.key, op.rule, op.n, op.interval, op.generation, ...)
    reply(op, back and 1 or 0, 0, block_left(op), 0, 1, s, t, u)
  end,

  reset = function(op)
    call('DEL', op.key)
    if op.block then call('DEL', op.block) end
    reply(op, 1, 0, 0, 0, 1, select(2, op.algorithm.read(op.key, op.rule)))
  end,
}

-- deny replies to an op of a denied group.
local function deny(op, room, ...)
  if op.kind == 'count' or op.kind == 'peek' then
    run[op.kind](op, room, ...)
  elseif op.pending then
    reply(op, op.violated and -1 or 0, 0, op.violated and count_denial(op) or 0, 0, op.pending, ...)
  else
    reply(op, -2, 0, 0, 0, 0, ...)
  end
end

local function run_all()
  local denied, overflow = check()
  if overflow and not denied then return add(-2) end
  add(0)
  for _, op in ipairs(ops) do
    local f = denied and deny or run[op.kind]
    f(op, op.algorithm.read(op.key, op.rule))
  end
end

local done, err = pcall(run_all)
if done then return out end
if err == foreign then return {now, -1} end
return refusal(err)
