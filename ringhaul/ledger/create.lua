-- Creates a job, running and without units.
-- ARGV: spec, by whom, (meta field, value)...
-- Returns 1; 0 if the job exists already with the same spec (a repeated call); -1 if the id belongs
-- to another job; -2 if Redis lost the meta of a job with this id but has other keys of it: their
-- done bits and counts would be taken for the new job's.
local SPEC = JOB .. 'spec'
if redis.call('EXISTS', META) == 1 then
  return redis.call('GET', SPEC) == ARGV[1] and 0 or -1
end
for _, part in ipairs(SINGLE_KEYS) do
  if not is_aside(part) and redis.call('EXISTS', JOB .. part) == 1 then
    return -2
  end
end
for _, part in ipairs(BUCKETED_KEYS) do
  if redis.call('EXISTS', bucket(part, 0)) == 1 then
    return -2
  end
end
redis.call('SET', SPEC, ARGV[1])
redis.call('DEL', JOB .. 'ends', JOB .. 'samples', JOB .. 'sampling', JOB .. 'events')
for i = 3, #ARGV, 2 do
  redis.call('HSET', META, ARGV[i], ARGV[i + 1])
end
redis.call('HSET', META, 'state', 'RUNNING', 'epoch', '1', 'units', '0', 'left', '0',
  'next', '0', 'sealed', '0', 'rejected_before', '0', 'seen_before', '0',
  'kept', '0', 'sum_tot', '0', 'sum_lat', '0', 'counted', '0', 'kept_epoch', '1',
  'created_ms', text(now))
add_total('created', 1)
note_event('created', '', ARGV[2])
return 1
