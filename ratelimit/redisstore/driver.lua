-- driver: runs the ops of one atomic group. First every take is checked, together with
-- what the group charges before it; then everything is done in order, or, if a take was
-- denied, only what changes nothing. What a counter is, it leaves to the algorithm: a
-- table of functions, in the file that comes before this one in the script.
--
-- KEYS    the subject's counters, in one slot
-- ARGV    now in us, 0 for the server's clock
--         for each key: interval (us), size, TTL (ms), nonce; see the algorithm
--         for each op: kind, number of its key, n, limit, window, over, life
--           window  what the limit is over
--           over    count and add: what is counted over; refund: where it was charged
--           life    refund: the life of the counter that was charged
-- Result  seven numbers for each op: verdict (1 done, 0 not done, -1 not done and its own
--         rule denied), remaining, us to retry, us to reset, count, where it was
--         charged, life.
--         Or an error, and nothing was charged: OVERFLOW, WRONGTYPE.
-- Clock   the server's, read once
-- Atomic  because a script is: nothing runs between check and charge. Every key is read
--         before the first charge, so that a foreign one fails the whole group.

local algorithm = buckets

local counters, first = {}, 2
for i = 1, #KEYS do
  local c = {
    key = KEYS[i], now = now, pending = 0,
    interval = number(ARGV[first]), size = number(ARGV[first + 1]),
    ttl = ARGV[first + 2], nonce = number(ARGV[first + 3]),
  }
  local err = algorithm.load(c)
  if err then return err end
  counters[i], first = c, first + 4
end

local denied, pending = false, {}
for i = first, #ARGV, 7 do
  local kind = ARGV[i]
  if kind == 'take' or kind == 'add' then
    local c = counters[number(ARGV[i + 1])]
    c.pending = c.pending + ARGV[i + 2]
    pending[i] = c.pending
    if not algorithm.fits(c, c.pending) then
      return redis.error_reply('OVERFLOW a count would leave 2^53')
    end
    if kind == 'take' then
      local used = algorithm.count(c, number(ARGV[i + 4]))
      denied = denied or used + c.pending > number(ARGV[i + 3])
    end
  end
end

local out = {}
for i = first, #ARGV, 7 do
  local kind, c, n = ARGV[i], counters[number(ARGV[i + 1])], number(ARGV[i + 2])
  local limit, window, over = number(ARGV[i + 3]), number(ARGV[i + 4]), number(ARGV[i + 5])
  local verdict, count, where, life = 1, 0, 0, 0
  local passes, remaining, retry, reset = 0, 0, 0, 0
  if kind == 'count' then
    count = algorithm.count(c, over)
  elseif kind == 'peek' then
    passes, remaining, retry, reset = algorithm.check(c, limit, window, n)
    verdict = 2 * passes - 1
  elseif denied then
    verdict = 0
    if pending[i] then
      passes, remaining, retry, reset = algorithm.check(c, limit, window, pending[i])
      if kind == 'take' then verdict = passes - 1 end
    end
  else
    if kind == 'refund' then
      if not algorithm.refund(c, n, over, number(ARGV[i + 6])) then verdict = 0 end
    elseif kind == 'reset' then
      algorithm.reset(c)
    else
      where, life = algorithm.charge(c, n), c.life
      if kind == 'add' then count = algorithm.count(c, over) end
    end
    passes, remaining, retry, reset = algorithm.check(c, limit, window, 1)
  end
  local at = #out
  out[at + 1], out[at + 2], out[at + 3], out[at + 4] = verdict, remaining, retry, reset
  out[at + 5], out[at + 6], out[at + 7] = count, where, life
end

for i = 1, #counters do algorithm.save(counters[i]) end
return out
