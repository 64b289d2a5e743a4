-- Records that the manifest or the result of a job was written or printed.
-- A repeated call changes nothing.
if redis.call('EXISTS', META) == 1 then
  redis.call('HSETNX', META, 'published_ms', text(now))
end
