-- Adds an event to the history of a running job, for what no other script sees.
-- ARGV: kind, text, by whom, unit or ''
-- Returns 1, 0 if the job does not run.
if redis.call('HGET', META, 'state') ~= 'RUNNING' then
  return 0
end
note_event(ARGV[1], ARGV[2], ARGV[3], ARGV[4])
return 1
