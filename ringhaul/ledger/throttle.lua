-- Replaces the pace of a running job.
-- ARGV: pace or '' for none; opaque here
-- Returns the job's state, '' if there is no such job; the pace is only set if it is running.
local state = redis.call('HGET', META, 'state')
if state == 'RUNNING' then
  redis.call('HSET', META, 'pace', ARGV[1])
end
return state or ''
