-- Makes a job, running and without units.
-- ARGV: spec, (meta field, value)...
-- Answers 1; 0 if the job is there already with the same spec (a repeated call); -1 if the id is
-- taken by another job.
local SPEC = JOB .. 'spec'
if redis.call('EXISTS', META) == 1 then
  return redis.call('GET', SPEC) == ARGV[1] and 0 or -1
end
redis.call('SET', SPEC, ARGV[1])
for i = 2, #ARGV, 2 do
  redis.call('HSET', META, ARGV[i], ARGV[i + 1])
end
redis.call('HSET', META, 'state', 'RUNNING', 'epoch', '1', 'units', '0', 'left', '0',
  'next', '0', 'sealed', '0', 'rejected_before', '0', 'seen_before', '0',
  'created_ms', text(now))
return 1
