-- Ends a running job early.
-- ARGV: state (CANCELLED or FAILED), reason or ''
-- Answers the job's state after this, '' if there is no such job.
local state = redis.call('HGET', META, 'state')
if state == 'RUNNING' then
  finish(ARGV[1], ARGV[2])
  return ARGV[1]
end
return state or ''
