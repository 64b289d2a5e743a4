-- Ends a running job early.
-- ARGV: state (CANCELLED or FAILED), reason or '', expected epoch or '' (any), by whom,
--   cause or '' (see causes.py; not from older versions)
-- Returns the job's state afterwards, '' if there is no such job.
local m = redis.call('HMGET', META, 'state', 'epoch')
local state = m[1]
if state == 'RUNNING' and (ARGV[3] == '' or ARGV[3] == m[2]) then
  finish(ARGV[1], ARGV[2], { by = ARGV[4], cause = ARGV[5] })
  return ARGV[1]
end
return state or ''
