-- Shared by every script about one job. Keys, types and TTLs: see keys.py.
--
-- Where a unit is. Units are numbered from 0 in the order in which they are split. Of the units
-- 0 .. units-1, those from `next` on wait to be issued for the first time. Each one below `next`
-- that is not done is in exactly one of
--
--   due       waits to be issued again (released, lease expired, or its message was lost)
--   issued    handed out for publishing, not yet claimed
--   lease     claimed; `owner` names the attempt
--   bad       quarantined
--   suspects  lost two workers; waits until it can run alone. A suspect that is issued or leased
--             stays in this set too, until it is done or bad.
--
-- `left` = units - done - bad. A sealed job with left = 0 is over.
--
-- Redis can lose single keys (eviction, manual deletion). So that no report is based on the remains
-- of a job, meta counts what other keys hold: `kept` is the number of fields of `extras`, `sum_tot`
-- and `sum_lat` are the sums of all increments of `tot` and `lat`. Jobs made by an older version
-- have none of the three. An older version that takes part in a job of this one ignores them:
-- `counted` is the number of commits that they include, and `kept_epoch` is the job's epoch unless
-- an older version resumed it, which drops extras. `audit` reads them, audit.py evaluates them.
--
-- A paused job is a running one with `paused_ms`, the time since when. None of its units is issued.
--
-- Redis runs a script alone and replicates its writes as one transaction, so these invariants also
-- hold after a crash that lost the end of the append-only file. A script is not rolled back when
-- it fails half way: arguments are checked before the first write. The history (samples and events)
-- is written with `pcall`: if Redis lost it, or a key has another type, the job continues without.

local META = KEYS[1]
local JOB = string.sub(META, 1, -5) -- ringhaul:{job}: without its `meta`
local DONE, TOT, LAT = JOB .. 'done', JOB .. 'tot', JOB .. 'lat'
local ISSUED, DUE, LEASE, OWNER = JOB .. 'issued', JOB .. 'due', JOB .. 'lease', JOB .. 'owner'
local STARTS, FAILS, LIVE = JOB .. 'starts', JOB .. 'fails', JOB .. 'live'
local SUSPECTS, BAD, LOSSES = JOB .. 'suspects', JOB .. 'bad', JOB .. 'losses'
local EXTRAS, CURSORS, BEGUN = JOB .. 'extras', JOB .. 'cursors', JOB .. 'begun'
local ENDS = JOB .. 'ends'
local SAMPLES, SAMPLING, EVENTS = JOB .. 'samples', JOB .. 'sampling', JOB .. 'events'

-- Parts that no count depends on: what is left of them is no trace of a lost job.
local ASIDE = { rate = true, ends = true, samples = true, sampling = true, events = true }

-- Times are the server's: the clocks of the hosts need not agree.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Formats a whole number: Lua would write 1e+14 for large ones.
local function text(number)
  return string.format('%.0f', number)
end

-- Parses an argument as a whole number. Plain form, because the text also names fields and members;
-- at most 15 characters, which a double holds exactly and HINCRBY cannot overflow with.
local function int(argument)
  if not (argument == '0' or string.find(argument, '^%-?[1-9]%d*$')) or #argument > 15 then
    error({ err = 'BADARG not a plain whole number of at most 15 characters: ' .. argument })
  end
  return tonumber(argument)
end

local function bucket(part, unit)
  return JOB .. part .. ':' .. text(math.floor(unit / UNITS_PER_BUCKET))
end

-- Calls `visit` with every key that the job has or may have.
local function each_key(visit)
  for _, part in ipairs(SINGLE_KEYS) do
    visit(JOB .. part)
  end
  local units = tonumber(redis.call('HGET', META, 'units') or '0')
  for unit = 0, units - 1, UNITS_PER_BUCKET do
    for _, part in ipairs(BUCKETED_KEYS) do
      visit(bucket(part, unit))
    end
  end
end

-- For writes to a job that is over: the key expires in the same millisecond as `meta`, so that a
-- job never exists in part.
local function keep_for_a_while(key)
  local at = redis.call('PEXPIRETIME', META)
  if at > 0 then
    redis.call('PEXPIREAT', key, text(at))
  end
end

-- Adds `change` to the number of fields in `extras`.
local function note_kept(change)
  if change ~= 0 and redis.call('HEXISTS', META, 'kept') == 1 then
    redis.call('HINCRBY', META, 'kept', change)
  end
end

-- Whether units = done + bad + left: false once Redis lost `done` or `bad`.
local function adds_up()
  local m = redis.call('HMGET', META, 'units', 'left')
  return redis.call('BITCOUNT', DONE) + redis.call('HLEN', BAD) + tonumber(m[2]) == tonumber(m[1])
end

-- Returns the first unit from `unit` on that is not done.
local function first_not_done(unit)
  if redis.call('GETBIT', DONE, text(unit)) == 0 then
    return unit
  end
  local found = redis.call('BITPOS', DONE, 0, text(unit), -1, 'BIT')
  return found >= 0 and found or redis.call('STRLEN', DONE) * 8
end

-- Sets the TTL of a key of the history. While the job runs, that is JOB_TTL_S from now, because a
-- worker of an older version, which knows no history, may end the job: nothing outlives `meta`.
local function keep_history(key)
  local at = redis.call('PEXPIRETIME', META)
  if at > 0 then
    redis.call('PEXPIREAT', key, text(at))
  else
    redis.call('EXPIRE', key, JOB_TTL_S)
  end
end

-- Returns the host of the worker that made an attempt's token, '' if it does not say.
local function host_of(token)
  return token and string.match(token, '@([^@]+):[^:@]*$') or ''
end

-- Shortens a reason, at the end of a character of UTF-8.
local function brief(words)
  local cut = EVENT_TEXT_BYTES_MAX
  if #words <= cut then
    return words
  end
  while cut > 0 and math.floor(string.byte(words, cut + 1) / 64) == 2 do
    cut = cut - 1
  end
  return string.sub(words, 1, cut)
end

-- Events that a job may have any number of: equal ones that follow closely are counted in one.
local REPEATED = { ['unit retried'] = true, ['unit released'] = true, ['window shrunk'] = true,
  ['node left alone'] = true }

-- Counts the event with an equal one of the last few. Returns whether there is one. No event of
-- another kind may be in between: the order of events stays true.
local function count_with_last(kind, words, by, unit)
  local last = redis.call('LRANGE', EVENTS, -EVENTS_COMPARED, -1)
  for i = #last, 1, -1 do
    local readable, event = pcall(cjson.decode, last[i])
    if not readable or not REPEATED[event.kind] then
      return false
    end
    if event.kind == kind and (event.text == words or kind == 'window shrunk') then
      event.count, event.last_ms, event.text = (event.count or 1) + 1, now, words
      if event.unit ~= unit then
        event.unit = nil -- several
      end
      if event.by ~= by then
        event.by = ''
      end
      redis.call('LSET', EVENTS, i - #last - 1, cjson.encode(event))
      return true
    end
  end
  return false
end

local function append_event(kind, words, by, unit)
  words, by, unit = brief(words or ''), brief(by or ''), tonumber(unit)
  if not (REPEATED[kind] and count_with_last(kind, words, by, unit)) then
    local event = cjson.encode({ at_ms = now, kind = kind, text = words, by = by, unit = unit })
    local last = kind == 'ended' and redis.call('LINDEX', EVENTS, -1)
    if last and string.find(last, '"kind":"ended"', 1, true)
      and string.find(last, '"at_ms":' .. text(now), 1, true) then
      redis.call('LSET', EVENTS, -1, event) -- this script ends the job for a graver reason
    elseif redis.call('RPUSH', EVENTS, event) > EVENTS_MAX then
      redis.call('LSET', EVENTS, EVENTS_FIRST, '')
      redis.call('LREM', EVENTS, 1, '')
    end
  end
  keep_history(EVENTS)
end

-- Adds an event to the history. `kind`: see history.EventKind.
local function note_event(kind, words, by, unit)
  pcall(append_event, kind, words, by, unit)
end

-- Returns the p50 and p99 in ms, or nil, of the requests in `lat` but not in `before`; and `lat` in
-- that form: "bucket:requests,...". The same as latency.percentile_ms.
local function latencies_since(before)
  local known, all, since, total = {}, {}, {}, 0
  for index, requests in string.gmatch(before, '(%d+):(%d+)') do
    known[index] = tonumber(requests)
  end
  local counts = redis.call('HGETALL', LAT)
  for i = 1, #counts, 2 do
    all[#all + 1] = counts[i] .. ':' .. counts[i + 1]
    local more = tonumber(counts[i + 1]) - (known[counts[i]] or 0)
    if more > 0 then
      since[#since + 1] = { tonumber(counts[i]), more }
      total = total + more
    end
  end
  table.sort(since, function(a, b) return a[1] < b[1] end)

  local function percentile(share)
    local seen = 0
    for _, entry in ipairs(since) do
      seen = seen + entry[2]
      if seen >= share * total then
        local index = entry[1]
        if index < 16 then
          return index / 1000
        end
        return ((index % 8 + 9) * 2 ^ (math.floor(index / 8) - 1) - 1) / 1000
      end
    end
  end

  return percentile(0.5), percentile(0.99), table.concat(all, ',')
end

-- Keeps every second sample of a full list, and doubles the pause between two.
local function thin_samples()
  if redis.call('LLEN', SAMPLES) < SAMPLES_MAX then
    return
  end
  local all, kept = redis.call('LRANGE', SAMPLES, 0, -1), {}
  for i = 1, #all, 2 do
    kept[#kept + 1] = all[i]
  end
  redis.call('DEL', SAMPLES)
  redis.call('RPUSH', SAMPLES, unpack(kept))
  local every_ms = tonumber(redis.call('HGET', SAMPLING, 'every_ms') or SAMPLE_EVERY_MS)
  redis.call('HSET', SAMPLING, 'every_ms', text(every_ms * 2))
end

-- Returns the figures of a sample, from `rows` on, in the order of history.Sample.
local function figures(p50, p99)
  local m = redis.call('HMGET', META, 'state', 'units', 'left')
  local sums, in_flight = { 0, 0, 0 }, 0
  if m[1] == 'RUNNING' then -- afterwards, figures of unfinished units are of no total
    for _, live in ipairs(redis.call('HVALS', LIVE)) do
      local i = 0
      for figure in string.gmatch(live, '%d+') do
        i = i + 1
        if i < 4 then
          sums[i] = sums[i] + tonumber(figure)
        elseif i == 4 then -- older workers do not send it
          in_flight = in_flight + tonumber(figure)
        end
      end
    end
  end
  local t = redis.call('HMGET', TOT, 'rows', 'rejected', 'bytes', 'retries')
  local leased = redis.call('ZCARD', LEASE)
  local workers = redis.call('HMGET', SAMPLING, 'workers', 'hosts')
  local values = {}
  for i = 1, 3 do
    values[i] = text(tonumber(t[i] or '0') + sums[i])
  end
  values[4] = t[4] or '0'
  values[5] = m[2]
  values[6] = text(tonumber(m[2]) - tonumber(m[3]) - redis.call('HLEN', BAD))
  values[7], values[8] = text(leased), text(in_flight)
  values[9] = p50 and string.format('%.3f', p50) or 'null'
  values[10] = p99 and string.format('%.3f', p99) or 'null'
  for i = 1, 2 do -- before a keeper has looked, at least the one with the lease
    values[10 + i] = text(math.max(tonumber(workers[i] or '0'), math.min(leased, 1)))
  end
  return table.concat(values, ',')
end

local function append_sample()
  local p50, p99, lat = latencies_since(redis.call('HGET', SAMPLING, 'lat') or '')
  local body = figures(p50, p99)
  local sample = '[' .. text(now) .. ',' .. body .. ']'
  local last = redis.call('LRANGE', SAMPLES, -2, -1)
  local still, at_ms = 0, -1
  for _, earlier in ipairs(last) do
    local time, rest = string.match(earlier, '^%[(%d+),(.*)%]$')
    at_ms, still = tonumber(time), rest == body and still + 1 or 0
  end
  local ended_ms = tonumber(redis.call('HGET', META, 'finished_ms') or math.huge)
  if #last > 0 and (still == 2 or at_ms == now or at_ms >= ended_ms) then
    redis.call('LSET', SAMPLES, -1, sample) -- a standstill is two samples, the end one
  else
    thin_samples()
    redis.call('RPUSH', SAMPLES, sample)
  end
  local workers, hosts = string.match(body, '(%d+),(%d+)$')
  redis.call('HSET', SAMPLING, 'at_ms', text(now), 'lat', lat, 'workers', workers, 'hosts', hosts)
  keep_history(SAMPLES)
  keep_history(SAMPLING)
end

-- Adds the job's figures now to its history. After its end, they replace those of its end.
local function take_sample()
  pcall(append_sample)
end

-- Ends a pause. Returns 1 if the job was paused, else 0.
local function unpause()
  local since = redis.call('HGET', META, 'paused_ms')
  if not since then
    return 0
  end
  redis.call('HINCRBY', META, 'paused_total_ms', text(math.max(now - since, 0)))
  return redis.call('HDEL', META, 'paused_ms')
end

-- Ends the job. `event`: {text, by, unit} of its event, where they are known; text: the reason, if
-- it is no error.
local function finish(state, reason, event)
  unpause()
  redis.call('HSET', META, 'state', state, 'finished_ms', text(now))
  if reason and reason ~= '' then
    redis.call('HSET', META, 'last_error', reason)
  end
  event = event or {}
  local words = reason and reason ~= '' and reason or event.text
  note_event('ended', words and state .. ': ' .. words or state, event.by, event.unit)
  take_sample()
  redis.call('EXPIRE', META, JOB_TTL_S)
  each_key(keep_for_a_while)
end

local TOO_MANY = 'more records were rejected than allowed'
local DAMAGE = 'its keys in Redis are not whole: some were evicted, deleted or lost'

-- Ends a job that has nothing left to do. The same rule as states.final_state.
local function finish_if_done()
  local m = redis.call('HMGET', META, 'state', 'sealed', 'left')
  if m[1] ~= 'RUNNING' or m[2] ~= '1' or m[3] ~= '0' then
    return
  end
  if not adds_up() then
    finish('FAILED', DAMAGE)
  elseif redis.call('HLEN', BAD) > 0 then
    finish('QUARANTINED')
  elseif tonumber(redis.call('HGET', TOT, 'rejected') or '0') > 0
    or tonumber(redis.call('HGET', TOT, 'missing') or '0') > 0 then
    finish('PARTIAL')
  else
    finish('COMPLETE')
  end
end

-- Ends the attempt that has the unit's lease.
local function end_lease(unit)
  redis.call('ZREM', LEASE, unit)
  redis.call('HDEL', OWNER, unit)
  redis.call('ZREM', BEGUN, unit)
end

-- Removes the unit from issued, due and lease. Its progress so far is not counted.
local function take_out(unit)
  redis.call('ZREM', ISSUED, unit)
  redis.call('ZREM', DUE, unit)
  end_lease(unit)
  redis.call('HDEL', LIVE, unit)
end

-- Lets the unit be issued again from `not_before` on.
local function put_back(unit, not_before)
  if redis.call('ZSCORE', SUSPECTS, unit) then
    redis.call('ZADD', SUSPECTS, text(not_before), unit)
  else
    redis.call('ZADD', DUE, text(not_before), unit)
  end
end

-- Quarantines the unit. If all other units are done, this ends the job. `words` and `by` are for the
-- history.
local function quarantine(unit, reason, words, by)
  note_event('unit given up', words or reason, by, unit)
  take_out(unit)
  redis.call('ZREM', SUSPECTS, unit)
  redis.call('HSET', BAD, unit, reason)
  redis.call('HINCRBY', META, 'left', -1)
  finish_if_done()
end

-- Handles a unit whose worker is gone. One loss is bad luck; after two the unit itself is a
-- suspect: it may have died as the neighbour of the real culprit, so it gets one more try, alone.
-- `words`: how that was found out, for the history.
local function reclaim(unit, words)
  local by = host_of(redis.call('HGET', OWNER, unit))
  take_out(unit)
  -- It had a lease, so it was started at least once, even if Redis lost how often.
  local starts = math.max(tonumber(redis.call('HGET', STARTS, unit) or '0'), 1)
  local starts_max = tonumber(redis.call('HGET', META, 'starts_max'))
  if starts >= starts_max then
    quarantine(unit, 'crashed', words, by)
    return
  end
  note_event('unit retried', words, by, unit)
  if starts >= 2 then
    redis.call('ZADD', SUSPECTS, text(now), unit)
  end
  put_back(unit, now)
end

