-- Shared by every script about one job. Keys, types and TTLs: see keys.py.
--
-- Where a unit is. Units are numbered from 0 in the order in which they are split, up to units-1.
-- Units from `next` on wait to be issued for the first time. Each unit below `next` that is not
-- done is in exactly one of
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
-- it fails half way: arguments are checked before the first write.

local META = KEYS[1]
local JOB = string.sub(META, 1, -5) -- ringhaul:{job}: without its `meta`
local DONE, TOT, LAT = JOB .. 'done', JOB .. 'tot', JOB .. 'lat'
local ISSUED, DUE, LEASE, OWNER = JOB .. 'issued', JOB .. 'due', JOB .. 'lease', JOB .. 'owner'
local STARTS, FAILS, LIVE = JOB .. 'starts', JOB .. 'fails', JOB .. 'live'
local SUSPECTS, BAD, LOSSES = JOB .. 'suspects', JOB .. 'bad', JOB .. 'losses'
local EXTRAS, CURSORS, BEGUN = JOB .. 'extras', JOB .. 'cursors', JOB .. 'begun'
local LIMITED = JOB .. 'limited'

-- Times are the server's: the clocks of the hosts need not agree.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Formats a whole number: Lua would write 1e+14 for large numbers.
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

-- Whether no count depends on this part of the job, so that finding only it does not mean that the
-- rest was lost.
local function is_aside(part)
  return part == 'rate' or part == 'ends'
    or part == 'samples' or part == 'sampling' or part == 'events'
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

-- Returns the host of the worker that made an attempt's token, '' if it does not say.
local function host_of(token)
  return token and string.match(token, '@([^@]+):[^:@]*$') or ''
end

-- Adds to a sum over all jobs of this job's kind, see totals.py. It serves metrics only, so it never
-- keeps a script from its work.
local kind
local function add_total(figure, number)
  if number ~= 0 then
    kind = kind or redis.call('HGET', META, 'kind') or 'load'
    redis.pcall('HINCRBY', TOTALS, kind .. ':' .. figure, text(number))
  end
end

-- Notes that the job makes progress, for `JobStatus.still_s`.
local function note_progress()
  redis.call('HSET', META, 'progress_ms', text(now))
end

-- Defined in history.lua. `note_event(kind, words, by, unit)` adds an event to the history, `kind` as
-- in history.EventKind. `take_sample()` adds the job's figures; after its end they replace the
-- figures of its end.
local note_event, take_sample

-- Ends a pause. Returns 1 if the job was paused, else 0.
local function unpause()
  local since = redis.call('HGET', META, 'paused_ms')
  if not since then
    return 0
  end
  redis.call('HINCRBY', META, 'paused_total_ms', text(math.max(now - since, 0)))
  note_progress()
  return redis.call('HDEL', META, 'paused_ms')
end

-- Ends the job. `event`: {text, by, unit} of its event, where they are known; text: the reason, if
-- it is not an error.
local function finish(state, reason, event)
  unpause()
  redis.call('HSET', META, 'state', state, 'finished_ms', text(now))
  add_total('ended:' .. state, 1)
  if reason and reason ~= '' then
    redis.call('HSET', META, 'last_error', reason)
  end
  event = event or {}
  if event.cause and event.cause ~= '' then
    redis.call('HSET', META, 'end_cause', event.cause)
  end
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

-- Quarantines the unit. If all other units are done, this ends the job. `words` and `by`: for the
-- history.
local function quarantine(unit, reason, words, by)
  note_event('unit given up', words or reason, by, unit)
  take_out(unit)
  redis.call('ZREM', SUSPECTS, unit)
  redis.call('HSET', BAD, unit, reason)
  redis.call('HINCRBY', META, 'left', -1)
  add_total('quarantined', 1)
  finish_if_done()
end

-- Handles a unit whose worker is gone. One loss is bad luck; after two the unit itself is a
-- suspect: it may have died as the neighbour of the real culprit, so it gets one more try, alone.
-- `words`: how that was found out, for the history.
local function reclaim(unit, words)
  local by = host_of(redis.call('HGET', OWNER, unit))
  take_out(unit)
  add_total('lost', 1)
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

