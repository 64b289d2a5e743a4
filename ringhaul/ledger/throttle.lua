-- Sets the pace of a running job, in the place of the one it had.
-- ARGV: pace or '' for none; opaque here
-- Answers the job's state, '' if there is no such job; only of a running one the pace is set.
local state = redis.call('HGET', META, 'state')
if state == 'RUNNING' then
  redis.call('HSET', META, 'pace', ARGV[1])
end
return state or ''
