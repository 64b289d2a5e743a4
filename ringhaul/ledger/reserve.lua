-- Reserves rows of the job's LIMIT for a unit, for this attempt and all later ones.
-- ARGV: unit, token, rows that the unit has or wants in all, the LIMIT
-- Returns {word, rows that the unit may have in all, rows that no unit has}. The word is
--   OK
--   LOST   another attempt has the lease, or the unit is done
--   STOP   the job does not run; or it failed now, because Redis lost which unit has how many
--   GONE   the job no longer exists: Redis lost it
--
-- What a unit has never shrinks: an attempt that died had read that many rows, so the next one
-- finds them again. Meta holds the sum of all units.
local unit, wanted, limit = ARGV[1], int(ARGV[3]), int(ARGV[4])
local m = redis.call('HMGET', META, 'state', 'limited')
local state, sum = m[1], tonumber(m[2] or '0')
if not state then
  return { 'GONE', 0, 0 }
end
if redis.call('HGET', OWNER, unit) ~= ARGV[2] then
  return { state == 'RUNNING' and 'LOST' or 'STOP', 0, 0 }
end
if state ~= 'RUNNING' then
  return { 'STOP', 0, 0 }
end
if sum > 0 and redis.call('EXISTS', LIMITED) == 0 then
  finish('FAILED', DAMAGE)
  return { 'STOP', 0, 0 }
end
local has = tonumber(redis.call('HGET', LIMITED, unit) or '0')
local more = math.max(math.min(wanted - has, limit - sum), 0)
if more > 0 then
  redis.call('HSET', LIMITED, unit, text(has + more))
  redis.call('HSET', META, 'limited', text(sum + more))
end
return { 'OK', has + more, limit - sum - more }
