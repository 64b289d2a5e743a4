-- Adds an event to the history of a running job, for what no other script sees.
-- ARGV: kind, text, by whom, unit or ''
-- Returns 1, 0 if the job does not run.
if redis.call('HGET', META, 'state') ~= 'RUNNING' then
  return 0
end
local TOTAL_OF = { ['node left alone'] = 'backoffs', ['window shrunk'] = 'shrinks' }
if TOTAL_OF[ARGV[1]] then
  add_total(TOTAL_OF[ARGV[1]], 1)
end
note_event(ARGV[1], ARGV[2], ARGV[3], ARGV[4])
return 1
