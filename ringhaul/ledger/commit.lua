-- Counts a finished unit, once, whichever attempt finished it.
-- ARGV: unit, epoch, token, result, extra or '', number of totals, (field, increment)...,
--       (latency bucket, increment)...
-- Returns 1: counted; 0: this unit was counted before, nothing changed; -1: another epoch, no such
-- unit, or the job's figures are final.
--
-- The token need not own the lease: an attempt that was presumed dead and finished all the same
-- did the work, and the row timestamps make a second attempt write the same cells. A job that was
-- stopped, cancelled or failed still counts what its workers had finished.
local unit, number = ARGV[1], int(ARGV[1])
local totals_end = 6 + 2 * int(ARGV[6])
local sum_tot, sum_lat = 0, 0
for i = 7, #ARGV, 2 do
  if i < totals_end then
    sum_tot = sum_tot + int(ARGV[i + 1])
  else
    sum_lat = sum_lat + int(ARGV[i + 1])
  end
end
local m = redis.call('HMGET', META, 'state', 'epoch', 'units', 'records_max', 'per_million_max',
  'rejected_before', 'seen_before', 'sum_tot', 'created_ms')
local state = m[1]
if not state or m[2] ~= ARGV[2] or number < 0 or number >= tonumber(m[3]) then
  return -1
end
if state == 'QUARANTINED' and redis.call('GETBIT', DONE, unit) == 0 then
  return -1
end

if redis.call('SETBIT', DONE, unit, 1) == 1 then return 0 end

local SUMMED = { rows = true, rejected = true, bytes = true, retries = true, streamed = true }
for i = 7, #ARGV, 2 do
  local is_total = i < totals_end
  redis.call('HINCRBY', is_total and TOT or LAT, ARGV[i], ARGV[i + 1])
  if not is_total then
    add_total('latency:' .. ARGV[i], tonumber(ARGV[i + 1]))
  elseif SUMMED[ARGV[i]] then
    add_total(ARGV[i], tonumber(ARGV[i + 1]))
  end
end
add_total('units', 1)
note_progress()
if m[8] then
  redis.call('HINCRBY', META, 'sum_tot', text(sum_tot))
  redis.call('HINCRBY', META, 'sum_lat', text(sum_lat))
  redis.call('HINCRBY', META, 'counted', 1)
end
-- Keeps when the unit ended, in ms since the job's creation. A worker of an older version, which
-- does not know the key, may end the job: so it has a TTL even while the job runs.
local ENDS = JOB .. 'ends'
local ended_ms = math.min(math.max(now - (tonumber(m[9]) or now), 1), 4294967295)
redis.pcall('SETRANGE', ENDS, text(number * 4), struct.pack('>I4', ended_ms))
if state == 'RUNNING' then
  redis.call('EXPIRE', ENDS, JOB_TTL_S)
else
  keep_for_a_while(ENDS)
end
local results = bucket('results', number)
redis.call('HSET', results, unit, ARGV[4])
if ARGV[5] ~= '' then
  note_kept(redis.call('HSET', EXTRAS, unit, ARGV[5]))
else
  note_kept(-redis.call('HDEL', EXTRAS, unit)) -- left by another attempt, which stopped the job
end
take_out(unit)
redis.call('HDEL', STARTS, unit)
redis.call('HDEL', LOSSES, unit, unit .. ':least', unit .. ':by')
redis.call('HDEL', CURSORS, unit)
redis.call('HDEL', FAILS, unit)
redis.call('ZREM', SUSPECTS, unit)
if redis.call('HDEL', BAD, unit) == 0 then
  redis.call('HINCRBY', META, 'left', -1)
end

if state ~= 'RUNNING' then
  for _, key in ipairs({ DONE, TOT, LAT, EXTRAS, results }) do
    keep_for_a_while(key)
  end
  take_sample()
  return 1
end

-- The same rule as limits.ErrorLimit.exceeded; a resume resets the job's allowance. If records do
-- not become one row each, records are counted as well.
local t = redis.call('HMGET', TOT, 'rows', 'rejected', 'records')
local all_rejected = tonumber(t[2] or '0')
local rejected = all_rejected - tonumber(m[6])
local seen = tonumber(t[3] or tonumber(t[1] or '0') + all_rejected) - tonumber(m[7])
local records_max, per_million_max = tonumber(m[4]), tonumber(m[5])
local event = { text = TOO_MANY, by = host_of(ARGV[3]), unit = unit }
if records_max >= 0 and rejected > records_max then
  finish('STOPPED', nil, event)
elseif per_million_max >= 0 and seen >= PERCENT_RECORDS_MIN
  and rejected * 1000000 > per_million_max * seen then
  finish('STOPPED', nil, event)
else
  finish_if_done()
end
return 1
