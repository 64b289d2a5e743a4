-- Saves an attempt's position durably: a later attempt of the unit continues from there.
-- ARGV: unit, token, cursor
-- Returns OK; LOST: another attempt has the lease, or the unit is done; STOP: the job does not run,
-- and the cursor is kept for a resume; GONE: the job no longer exists, Redis lost it.
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
