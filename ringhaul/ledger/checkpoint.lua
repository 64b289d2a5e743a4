-- Keeps where an attempt has got to for good: a later attempt of the unit goes on from there.
-- ARGV: unit, token, cursor
-- Answers OK; LOST: the lease is another attempt's or the unit is done; STOP: the job does not run,
-- and the cursor is kept for a resume; GONE: there is no such job, Redis lost it.
local unit = ARGV[1]
local state = redis.call('HGET', META, 'state')
if not state then
  return 'GONE'
end
if redis.call('HGET', OWNER, unit) ~= ARGV[2] then
  return state == 'RUNNING' and 'LOST' or 'STOP'
end
redis.call('HSET', CURSORS, unit, ARGV[3])
if state ~= 'RUNNING' then
  keep_for_a_while(CURSORS)
  return 'STOP'
end
return 'OK'
