-- Replaces the priority of a running job.
-- ARGV: priority; by whom
-- Returns the job's state, '' if there is no such job; the priority is only set if it is running.
local state = redis.call('HGET', META, 'state')
if state == 'RUNNING' then
  if redis.call('HGET', META, 'priority') ~= ARGV[1] then
    note_event('priority', ARGV[1], ARGV[2])
  end
  redis.call('HSET', META, 'priority', ARGV[1])
end
return state or ''
