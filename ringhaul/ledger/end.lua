-- Ends a running job early.
-- ARGV: state (CANCELLED or FAILED), reason or '', expected epoch or '' (any), by whom
-- Returns the job's state afterwards, '' if there is no such job.
local m = redis.call('HMGET', META, 'state', 'epoch')
local state = m[1]
if state == 'RUNNING' and (ARGV[3] == '' or ARGV[3] == m[2]) then
  finish(ARGV[1], ARGV[2], { by = ARGV[4] })
  return ARGV[1]
end
return state or ''
