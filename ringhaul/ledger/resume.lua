-- Runs an ended job's remaining units, from scratch and with all allowances reset. Committed units
-- stay committed.
-- ARGV: epoch that is being left, records_max, per_million_max ('' and '' leave the limit as it is),
--   by whom
-- Returns {epoch now, state now}: the next epoch, even if this call repeats a call that succeeded;
-- if the job could not be resumed, the old epoch or another. {-1, ''}: its done bits are
-- inconsistent, and units that are done would be run and counted again.
local m = redis.call('HMGET', META, 'state', 'epoch', 'units', 'started_ms', 'finished_ms', 'kept')
local state = m[1]
local resumable = state == 'STOPPED' or state == 'CANCELLED' or state == 'FAILED'
  or state == 'QUARANTINED'
if not resumable or m[2] ~= ARGV[1] then
  return { tonumber(m[2] or '0'), state or '' }
end
if not adds_up() then
  return { -1, '' }
end
if ARGV[2] ~= '' then
  int(ARGV[2])
  int(ARGV[3])
  redis.call('HSET', META, 'records_max', ARGV[2], 'per_million_max', ARGV[3])
end
for _, unit in ipairs(redis.call('HKEYS', LIVE)) do
  if redis.call('GETBIT', DONE, unit) == 0 then
    redis.call('HDEL', EXTRAS, unit) -- see stop.lua
  end
end
redis.call('DEL', ISSUED, DUE, LEASE, OWNER, BEGUN, LIVE, STARTS, FAILS, SUSPECTS, LOSSES, BAD)
local t = redis.call('HMGET', TOT, 'rows', 'rejected', 'records')
local rejected = tonumber(t[2] or '0')
local seen = tonumber(t[3] or tonumber(t[1] or '0') + rejected)
local epoch = redis.call('HINCRBY', META, 'epoch', 1)
if m[6] then -- from here on, this counts what an older version kept or dropped
  redis.call('HSET', META, 'kept', redis.call('HLEN', EXTRAS), 'kept_epoch', text(epoch))
end
redis.call('HSET', META, 'state', 'RUNNING', 'next', '0',
  'left', text(tonumber(m[3]) - redis.call('BITCOUNT', DONE)),
  'rejected_before', text(rejected), 'seen_before', text(seen))
if m[4] and m[5] then -- a job's time starts at its first claim
  redis.call('HINCRBY', META, 'idle_ms', text(math.max(now - tonumber(m[5]), 0)))
end
redis.call('HDEL', META, 'finished_ms', 'last_error', 'end_cause', 'error_ms', 'error_done', 'declined',
  'declined_ms', 'silent', 'trouble', 'trouble_ms')
note_progress()
each_key(function(key) redis.call('PERSIST', key) end)
redis.call('EXPIRE', JOB .. 'ends', JOB_TTL_S) -- see commit.lua
note_event('resumed', 'from ' .. state, ARGV[4])
take_sample()
finish_if_done()
return { epoch, redis.call('HGET', META, 'state') }
