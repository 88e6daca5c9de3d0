-- driver: runs the calls. First every take of a group is checked, together with what the
-- group charges before it; then everything is done in order, or, if a take was denied,
-- only what changes nothing. What a counter is, it leaves to the algorithm. Every key is
-- read before the first charge, so that a foreign one fails the whole group.

local made = {}

-- open returns the counters of a group's ops, or nil if one is something else's. Rules
-- that share a counter can differ in expiry; the longest counts.
local function open(ops)
  local counters = {}
  for i = 1, #ops do
    local op = ops[i]
    local c = counters[op.key]
    if not c then
      local r = op.rule
      local a = made[r.algorithm] or make[r.algorithm]()
      made[r.algorithm] = a
      c = {algorithm = a, key = KEYS[key + op.key], now = r.now, interval = r.interval, size = r.size, ttl = r.ttl, pending = 0}
      if not a.load(c) then return nil end
      counters[op.key] = c
    end
    if op.rule.ttl > c.ttl then c.ttl = op.rule.ttl end
    op.counter, op.algorithm = c, c.algorithm
  end
  return counters
end

-- check says whether a take is denied, or nil if a count would leave 2^53.
local function check(ops)
  local denied = false
  for i = 1, #ops do
    local op, kind = ops[i], ops[i].kind
    if kind == 'take' or kind == 'add' then
      local c = op.counter
      c.pending = c.pending + op.n
      op.pending = c.pending
      if not op.algorithm.fits(c, c.pending) then return nil end
      denied = denied or kind == 'take' and not op.algorithm.passes(c, op.rule, c.pending)
    end
  end
  return denied
end

local function fail(ops, verdict)
  for _ = 1, #ops do answer(verdict, 0, 0, 0, 0, 0, 0) end
end

-- run runs a group.
local function run(ops)
  local counters = open(ops)
  if not counters then return fail(ops, -3) end
  local denied = check(ops)
  if denied == nil then return fail(ops, -2) end
  for i = 1, #ops do
    local op = ops[i]
    local kind, c, a, r, n = op.kind, op.counter, op.algorithm, op.rule, op.n
    local verdict, count, where, life = 1, 0, 0, 0
    local passes, remaining, retry, reset = 0, 0, 0, 0
    if kind == 'count' then
      count = a.count(c, op.over)
    elseif kind == 'peek' then
      passes, remaining, retry, reset = a.check(c, r, n)
      verdict = 2 * passes - 1
    elseif denied then
      verdict = 0
      if op.pending then
        passes, remaining, retry, reset = a.check(c, r, op.pending)
        if kind == 'take' then verdict = passes - 1 end
      end
    else
      if kind == 'refund' then
        if not a.refund(c, n, op.over, op.life) then verdict = 0 end
      elseif kind == 'reset' then
        a.reset(c)
      else
        where, life = a.charge(c, n), c.life
        if kind == 'add' then count = a.count(c, op.over) end
      end
      passes, remaining, retry, reset = a.check(c, r, 1)
    end
    answer(verdict, remaining, retry, reset, count, where, life)
  end
  for _, c in pairs(counters) do c.algorithm.save(c) end
end

local last = #ARGV
while at <= last do
  local size = ARGV[at]
  if size == '0' then
    local r, kind, n, over = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
    if not rules[r] then rules[r] = rule(r) end
    r = rules[r]
    if not quick[r.algorithm](r, KEYS[key + 1], kind, n, over) then
      run({{rule = r, kind = kind, key = 1, n = number(n), over = number(over)}})
    end
    at, key = at + 5, key + 1
  else
    local ops, keys = {}, number(ARGV[at + 1])
    at = at + 2
    for i = 1, number(size) do
      local r = ARGV[at]
      if not rules[r] then rules[r] = rule(r) end
      ops[i] = {
        rule = rules[r], kind = ARGV[at + 1], key = number(ARGV[at + 2]),
        n = number(ARGV[at + 3]), over = number(ARGV[at + 4]), life = number(ARGV[at + 5]),
      }
      at = at + 6
    end
    known_head, known_bucket = nil, nil
    run(ops)
    key = key + keys
  end
end
return out
