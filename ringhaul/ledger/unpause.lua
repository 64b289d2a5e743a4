-- Continues a paused job.
-- ARGV: by whom
-- Returns 1; 0 if it was not paused; -1 if there is no such job.
if redis.call('EXISTS', META) == 0 then
  return -1
end
local was_paused = unpause()
if was_paused == 1 then
  note_event('resumed', '', ARGV[1])
end
return was_paused
