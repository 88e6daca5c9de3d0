-- This file is the last part of a script that runs a group of ops on a subject.
--
-- KEYS    the counters, and the blocks of rules that have one
-- ARGV    now, kind, and then for each op:
--           index of its counter in KEYS, index of its block or 0,
--           n, time, generation,
--           denials that start a block, µs in which they are counted, µs of the block,
--           algorithm, the rule's numbers
--         The time is the prepaid µs of a take, and the time of the charge for a refund
-- Result  now, status, and then for each op its verdict, the rest of its block in µs, and the
--         algorithm's report. The status is 0, or -1 if a key holds a foreign value, or -2 if a counter
--         would exceed 2^53. If the status is not 0, nothing was changed. The verdict is 1 if the op was
--         done, 0 if it was not done, and -1 if the op's own rule has denied it
-- Block   two integers: the number of denials, and the end of the time in which they are counted. After
--         enough denials, the second integer is the end of the block. The key expires at that time
-- Clock   Redis TIME, unless a test sends its own
-- Atomic  because another caller must not charge between the check and the charge

local ops, at = {}, 3
while at <= #ARGV do
  local algorithm = algorithms[ARGV[at + 8]]
  ops[#ops + 1] = {
    key = KEYS[number(ARGV[at])], block = KEYS[number(ARGV[at + 1])],
    n = number(ARGV[at + 2]), time = number(ARGV[at + 3]), generation = number(ARGV[at + 4]),
    after = number(ARGV[at + 5]), within = number(ARGV[at + 6]), lasts = number(ARGV[at + 7]),
    algorithm = algorithm, rule = algorithm.rule(at + 9),
  }
  at = at + 9 + algorithm.rule_size
end

-- block_left returns the rest of an op's block in µs, or 0 if there is no block.
local function block_left(op)
  if not op.block then return 0 end
  local denials, ends = pair(op.block)
  if not denials or denials < op.after or ends <= now then return 0 end
  return ends - now
end

-- count_denial counts a denial and returns the rest of the block. A denial does not prolong a block. If
-- Redis is full or read-only, the take is denied although the denial cannot be counted.
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

-- reply adds the result of an op to out. charged is 1 if the op has charged units. n is the number of units
-- that the op would take.
local function reply(op, verdict, held, charged, n, s, t, u)
  out[o + 1], out[o + 2] = verdict, held
  o = o + 2
  op.algorithm.report(op.key, op.rule, charged, n, s, t, u)
end

-- check_takes returns whether a take is denied, and whether a counter would exceed 2^53. A take must pass
-- together with the takes before it. check_takes reads every key.
local function check_takes()
  local units, denied, exceeds = {}, false, false
  for _, op in ipairs(ops) do
    local a, key, r = op.algorithm, op.key, op.rule
    local s, t, u = a.read(key, r)
    units[key] = (units[key] or 0) + op.n
    op.units = units[key]
    op.violated = block_left(op) > 0 or op.units > a.room(key, r, s, t, u)
    denied = denied or op.violated
    exceeds = exceeds or not op.violated and not a.fits(key, r, op.units, s, t, u)
  end
  return denied, exceeds
end

-- read_all reads every key, so that a foreign value ends the script before it changes anything.
local function read_all()
  for _, op in ipairs(ops) do
    block_left(op)
    op.algorithm.read(op.key, op.rule)
  end
end

local run = {}

function run.take()
  local denied, exceeds = check_takes()
  if exceeds and not denied then error(overflow, 0) end
  for _, op in ipairs(ops) do
    local a = op.algorithm
    local s, t, u = a.read(op.key, op.rule)
    if denied then
      reply(op, op.violated and -1 or 0, op.violated and count_denial(op) or 0, 0, op.units, s, t, u)
    else
      reply(op, 1, 0, 1, 0, a.charge(op.key, op.rule, op.n, op.time, s, t, u))
    end
  end
end

function run.peek()
  for _, op in ipairs(ops) do
    local a, held = op.algorithm, block_left(op)
    local s, t, u = a.read(op.key, op.rule)
    local passes = held == 0 and op.n <= a.room(op.key, op.rule, s, t, u)
    reply(op, passes and 1 or -1, held, 0, op.n, s, t, u)
  end
end

function run.refund()
  read_all()
  for _, op in ipairs(ops) do
    local a = op.algorithm
    local back, s, t, u = a.refund(op.key, op.rule, op.n, op.time, op.generation, a.read(op.key, op.rule))
    reply(op, back and 1 or 0, block_left(op), 0, 1, s, t, u)
  end
end

function run.reset()
  read_all()
  for _, op in ipairs(ops) do
    call('DEL', op.key)
    if op.block then call('DEL', op.block) end
    reply(op, 1, 0, 0, 1, op.algorithm.read(op.key, op.rule))
  end
end

out[2], o = 0, 2
local done, err = pcall(run[ARGV[2]])
if done then return out end
if err == foreign then return {now, -1} end
if err == overflow then return {now, -2} end
return {err = err} -- a raised error would lose its code
