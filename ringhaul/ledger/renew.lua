-- Extends a lease and records the attempt's progress.
-- ARGV: unit, token, lease_ms, "rows,rejected,bytes,in flight" of this attempt so far or '' (older
--   workers do not send the requests in flight), why it makes no progress or ''
-- Returns {word, pace of the job, units of it that run now, now_ms}. The word is
--   OK
--   PAUSE  the job is paused; the lease is extended for an attempt that cannot be given back
--   LOST   another attempt has the lease, or the unit is done
--   STOP   the job does not run
--   GONE   the job no longer exists: Redis lost it
-- Progress is kept when the job was stopped, so that `status` can say how many rows of unfinished
-- units are in the table.
local unit, lease_ms = ARGV[1], int(ARGV[3])
local m = redis.call('HMGET', META, 'state', 'paused_ms', 'pace')
local state = m[1]

local function answer(word)
  return { word, m[3] or '', redis.call('ZCARD', LEASE), now }
end

if not state then
  return answer('GONE') -- do not recreate any of its keys
end
if redis.call('HGET', OWNER, unit) ~= ARGV[2] then
  return answer(state == 'RUNNING' and 'LOST' or 'STOP')
end
if ARGV[4] ~= '' then
  local figures = '^%d+,%d+,%d+' -- without the requests in flight, which change when nothing moves
  local before = redis.call('HGET', LIVE, unit) or '0,0,0'
  redis.call('HSET', LIVE, unit, ARGV[4])
  if state == 'RUNNING' and string.match(before, figures) ~= string.match(ARGV[4], figures) then
    note_progress()
  end
end
if state ~= 'RUNNING' then
  keep_for_a_while(LIVE)
  return answer('STOP')
end
redis.call('ZADD', LEASE, text(now + lease_ms), unit)
if ARGV[5] and ARGV[5] ~= '' then
  redis.call('HSET', META, 'trouble', ARGV[5], 'trouble_ms', text(now))
end
return answer(m[2] and 'PAUSE' or 'OK')
