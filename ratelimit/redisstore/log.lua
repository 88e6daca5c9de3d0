-- log: a counter that remembers every charge; in Go it is logPair, with the same answers.
-- There are two encodings, which differ in the first half of this file.
--
-- Event    what was charged in one us: its time and three words, units, sum, life. The
--          sum is of all units charged up to it and with it, so what a window holds is
--          the difference of two sums, and when units leave it is a search. life is
--          that of the counter. One that was charged ahead has a fourth, clock: when.
-- Log      a sorted set: the words, with the time as score; or
--          a stream: time-number, in a field e the words. It is trimmed now and then, so
--          some events at its beginning may be of before.
--          Both end at the newest event, even if it was refunded, so that the time never
--          goes back: a clock that does charges at the newest event's time. They live as
--          long as that is in the window. What is charged ahead has a later time, and
--          what is charged next no earlier one; but the window moves by the clock.
-- Rules    x, y and z mean nothing.

-- event makes one of its time and its words.
local function event(at, words)
  local e = {at = at, n = decode(words, 0), sum = decode(words, 7), life = decode(words, 14), words = words}
  e.clock = #words == 28 and decode(words, 21) or at
  if #words ~= 21 and #words ~= 28 or e.n > e.sum or not at or at % 1 ~= 0 or at > most or e.clock > at then
    error(foreign)
  end
  return e
end

local function words(e)
  local w = encode(e.n) .. encode(e.sum) .. encode(e.life)
  if e.clock == e.at then return w end
  return w .. encode(e.clock)
end

-- append adds to a stream, whose last id is that of its newest event unless somebody else
-- has changed it.
local function append(...)
  local id = pcall('XADD', ...)
  if type(id) ~= 'table' then return end
  if string.find(id.err, 'equal or smaller') then error(foreign) end
  call('XADD', ...) -- which raises the error
end

local encodings = {}

encodings.log = function()
  local function one(reply) return reply[1] and event(number(reply[2]), reply[1]) or nil end

  -- from returns the events from a time on.
  local function from(key, at)
    local events, reply = {}, call('ZRANGEBYSCORE', key, digits(at), '+inf', 'WITHSCORES')
    for i = 1, #reply, 2 do events[#events + 1] = event(number(reply[i + 1]), reply[i]) end
    return events
  end

  return {
    -- newest returns an event, nil if there is none.
    newest = function(key)
      local reply = pcall('ZRANGE', key, '-1', '-1', 'WITHSCORES')
      if reply.err then error(foreign) end
      return one(reply)
    end,

    -- first returns the first event after a time.
    first = function(key, at)
      return one(call('ZRANGEBYSCORE', key, '(' .. digits(at), '+inf', 'WITHSCORES', 'LIMIT', '0', '1'))
    end,

    -- reached returns the first event with at least that sum, of those after a time.
    reached = function(key, sum)
      local low, high = 0, call('ZCARD', key) - 1
      while low < high do
        local middle = floor((low + high) / 2)
        local rank = digits(middle)
        local e = one(call('ZRANGE', key, rank, rank, 'WITHSCORES'))
        if e.sum >= sum then high = middle else low = middle + 1 end
      end
      return one(call('ZRANGE', key, digits(low), digits(low), 'WITHSCORES'))
    end,

    -- put adds an event, in place of the newest one if that is given, and may drop those
    -- up to a time. It adds first: a full Redis refuses that only before the first write.
    put = function(key, e, newest, cut)
      call('ZADD', key, digits(e.at), words(e))
      if newest then call('ZREM', key, newest.words) end
      call('ZREMRANGEBYSCORE', key, '-inf', digits(cut))
    end,

    -- change lets f change the events from a time on.
    change = function(key, at, f)
      local events = from(key, at)
      call('ZREMRANGEBYSCORE', key, digits(at), '+inf')
      for _, e in ipairs(events) do
        f(e)
        call('ZADD', key, digits(e.at), words(e))
      end
    end,
  }
end

encodings.stream = function()
  local function one(entry)
    if not entry then return nil end
    if entry[2][1] ~= 'e' then error(foreign) end
    local at, number_ = string.match(entry[1], '^(%d+)-(%d+)$')
    local e = event(number(at), entry[2][2])
    e.id, e.number = entry[1], number(number_)
    return e
  end

  local function id(e) return digits(e.at) .. '-' .. digits(e.number) end

  -- add adds an event at the end.
  local function add(key, e) append(key, id(e), 'e', words(e)) end

  local function first(key, at)
    return one(call('XRANGE', key, digits(math.max(at, -1) + 1), '+', 'COUNT', '1')[1])
  end

  return {
    newest = function(key)
      local reply = pcall('XREVRANGE', key, '+', '-', 'COUNT', '1')
      if reply.err or not reply[1] and call('EXISTS', key) > 0 then error(foreign) end
      return one(reply[1])
    end,

    first = first,

    -- reached jumps to the next event wherever it looks, so that gaps cost nothing.
    reached = function(key, sum, at, newest)
      local low, high = at, newest.at
      while low < high do
        local middle = floor((low + high) / 2)
        local e = first(key, middle - 1)
        if e.sum >= sum then high = middle else low = e.at + 1 end
      end
      return first(key, low - 1)
    end,

    put = function(key, e, newest, cut)
      e.number = newest and newest.number + 1 or 0
      e.id = id(e)
      append(key, 'MINID', '~', digits(math.max(cut, -1) + 1), e.id, 'e', words(e))
      if newest then call('XDEL', key, newest.id) end
    end,

    -- change takes the events out and adds them again, for which the stream has to forget
    -- that it had them; where it cannot, it begins anew.
    change = function(key, at, f)
      local entries, events = call('XRANGE', key, digits(math.max(at, 0)), '+'), {}
      for i = 1, #entries do events[i] = one(entries[i]) end
      for _, e in ipairs(events) do
        call('XDEL', key, e.id)
        f(e)
      end
      local before = one(call('XREVRANGE', key, '+', '-', 'COUNT', '1')[1])
      local set = before and pcall('XSETID', key, before.id)
      if not set or set.err then
        local rest = call('XRANGE', key, '-', '+')
        call('DEL', key)
        for i = 1, #rest do add(key, one(rest[i])) end
      end
      for _, e in ipairs(events) do add(key, e) end
    end,
  }
end

local function make_log(encoding)
  local log = encodings[encoding]()

  -- since returns the units charged after a time.
  local function since(c, at)
    local e = c.last and c.last.at > at and log.first(c.key, at)
    return e and c.last.sum - e.sum + e.n or 0
  end

  -- used returns the units in the window.
  local function used(c)
    c.used = c.used or since(c, c.clock - c.per)
    return c.used
  end

  -- wait returns the us to when the event leaves the window with which the units reached
  -- that sum.
  local function wait(c, sum)
    local e = c.last
    if e.sum - e.n >= sum then e = log.reached(c.key, sum, c.clock - c.per + 1, e) end
    return e.at + c.per - c.now
  end

  local function fresh(c)
    c.last, c.clock, c.used = nil, c.now, 0
  end

  return {
    load = function(c, r)
      c.per = r.per
      local newest = log.newest(c.key)
      if newest then
        c.last, c.clock = newest, math.max(newest.clock, c.now)
      else
        fresh(c)
      end
    end,

    longer = function() end,

    fits = function(c, r, n) return n <= most - used(c) end,

    count = function(c, over) return since(c, c.clock - over) end,

    passes = function(c, r, n) return n <= r.limit - used(c) end,

    check = function(c, r, n)
      if r.limit == 0 then return 1, 0, 0, 0 end
      if not c.last then return 1, r.limit, 0, 0 end
      local u = used(c)
      local remaining = math.max(0, r.limit - u)
      local reset = u > 0 and wait(c, c.last.sum) or 0
      if n <= remaining then return 1, remaining, 0, reset end
      return 0, remaining, wait(c, c.last.sum + n - r.limit), reset
    end,

    charge = function(c, r, n, ahead)
      local last = c.last
      local at, cut = c.clock + ahead, c.clock - c.per
      if last then at = math.max(at, last.at) end
      local e = {at = at, n = n, sum = n, clock = c.clock}
      local same
      if last and last.at > cut then
        if last.sum + n > most then
          local begun = log.first(c.key, cut)
          local less = begun.sum - begun.n
          log.change(c.key, begun.at, function(x) x.sum = x.sum - less end)
          last = log.newest(c.key)
        end
        e.life, e.sum = last.life, last.sum + n
        if last.at == e.at then
          same, e.n = last, last.n + n
        end
      else
        e.life, seed = seed, seed + 1
      end
      log.put(c.key, e, same, cut)
      e.words = words(e)
      c.used, c.last, c.life, c.charged = used(c) + n, e, e.life, true
      return e.at
    end,

    -- refund takes the units out of their event, and so off all sums from there on.
    refund = function(c, r, n, at, life)
      if n <= 0 or not c.last or life ~= c.last.life or at <= c.clock - c.per then return false end
      local e = log.first(c.key, at - 1)
      if not e or e.at ~= at or e.n < n then return false end
      log.change(c.key, at, function(x)
        if x.at == at then x.n = x.n - n end
        x.sum = x.sum - n
      end)
      c.last, c.used = log.newest(c.key), nil
      return true
    end,

    reset = function(c)
      call('DEL', c.key)
      c.charged = nil
      fresh(c)
    end,

    save = function(c)
      if c.last and (c.charged or call('PTTL', c.key) < 0) then
        call('PEXPIRE', c.key, digits(math.max(1, ceil(c.last.at + c.per - c.now, 1000))))
      end
    end,
  }
end

make.log = function() return make_log('log') end
make.stream = function() return make_log('stream') end
