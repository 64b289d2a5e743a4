-- Replaces the pace of a running job.
-- ARGV: pace or '' for none, opaque here; by whom; the pace in words
-- Returns the job's state, '' if there is no such job; the pace is only set if it is running.
local state = redis.call('HGET', META, 'state')
if state == 'RUNNING' then
  if (redis.call('HGET', META, 'pace') or '') ~= ARGV[1] then
    note_event('throttled', ARGV[3], ARGV[2])
  end
  redis.call('HSET', META, 'pace', ARGV[1])
end
return state or ''
