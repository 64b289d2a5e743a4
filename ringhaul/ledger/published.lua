-- Notes that what a job's end is told by, its manifest or its result, was written or printed. A
-- repeated call changes nothing.
if redis.call('EXISTS', META) == 1 then
  redis.call('HSETNX', META, 'published_ms', text(now))
end
