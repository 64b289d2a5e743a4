-- Continues a paused job.
-- Returns 1; 0 if it was not paused; -1 if there is no such job.
if redis.call('EXISTS', META) == 0 then
  return -1
end
return unpause()
