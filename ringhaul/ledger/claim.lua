-- Leases a unit to an attempt.
-- ARGV: unit, epoch, token, lease_ms, created_ms of the expected job or '' (any)
-- Returns {'CLAIMED', attempt, spec, pace, units of the job that run now, now_ms} or
--   {'OTHER'}    the id belongs to another job by now
--   {'STOP'}     the job does not run, or not in this epoch; or it failed now, because Redis lost
--                the unit's spec
--   {'DONE'}     the unit is committed
--   {'PAUSED'}   the job is paused; the unit will be issued again when it continues
--   {'BUSY'}     another attempt has it, or it is not its turn yet; it will be issued again
--   {'BAD'}      the unit was quarantined
--   {'UNKNOWN'}  no such job or unit
--   {'ENOUGH'}   the units that run reach the job's rate limit; it will be issued again
-- A repeated call with the same token gets the same attempt again.
local unit, number, token, lease_ms = ARGV[1], int(ARGV[1]), ARGV[3], int(ARGV[4])
local m = redis.call('HMGET', META, 'state', 'epoch', 'units', 'starts_max', 'silent', 'paused_ms',
  'pace', 'created_ms', 'declined_ms')
if not m[1] then
  return { 'UNKNOWN' }
end
if ARGV[5] ~= '' and m[8] ~= ARGV[5] then
  return { 'OTHER' }
end
if m[1] ~= 'RUNNING' or m[2] ~= ARGV[2] then
  return { 'STOP' }
end
if number < 0 or number >= tonumber(m[3]) then
  return { 'UNKNOWN' }
end
if redis.call('GETBIT', DONE, unit) == 1 then
  return { 'DONE' }
end

local spec = redis.call('HGET', bucket('units', number), unit)
if not spec then
  finish('FAILED', DAMAGE)
  return { 'STOP' }
end

local function claimed(starts)
  redis.call('ZADD', LEASE, text(now + lease_ms), unit)
  return { 'CLAIMED', starts, spec, m[7] or '', redis.call('ZCARD', LEASE), now }
end

local expiry = redis.call('ZSCORE', LEASE, unit)
if expiry then
  if redis.call('HGET', OWNER, unit) == token then
    return claimed(tonumber(redis.call('HGET', STARTS, unit) or '1'))
  end
  if tonumber(expiry) > now then
    return { 'BUSY' }
  end
  reclaim(unit, 'its lease expired')
end
if redis.call('HEXISTS', BAD, unit) == 1 then
  return { 'BAD' }
end
if m[6] then
  return { 'PAUSED' }
end
-- Only a unit whose turn it is: a late message must neither cut a backoff short nor run a suspect
-- beside others.
if not redis.call('ZSCORE', ISSUED, unit) then
  local not_before = redis.call('ZSCORE', DUE, unit)
  if not not_before or tonumber(not_before) > now then
    return { 'BUSY' }
  end
end
if (m[7] or '') ~= '' then
  local waits, enough = turns(JOB .. 'rate')
  if waits >= TURNS_ENOUGH and redis.call('ZCARD', LEASE) >= enough then
    take_out(unit)
    put_back(unit, now + ENOUGH_DELAY_MS)
    return { 'ENOUGH' }
  end
end
local starts = redis.call('HINCRBY', STARTS, unit, 1)
if starts > tonumber(m[4]) then
  quarantine(unit, 'crashed', nil, host_of(token))
  return { 'BAD' }
end
take_out(unit)
redis.call('HSET', OWNER, unit, token)
redis.call('ZADD', BEGUN, text(now), unit)
local first = redis.call('HSETNX', META, 'started_ms', text(now)) == 1
if first then
  redis.call('HDEL', META, 'paused_total_ms') -- the time counts from here, without earlier pauses
end
if m[5] then
  redis.call('HDEL', META, 'silent')
end
if m[9] then
  redis.call('HDEL', META, 'declined', 'declined_ms')
end
local answer = claimed(starts)
if first then
  note_event('first unit', '', host_of(token), unit)
  take_sample()
end
return answer
