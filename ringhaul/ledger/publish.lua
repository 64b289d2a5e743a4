-- Lets one process at a time write the manifest or the result of an ended job, until `published`
-- records that it was written.
-- ARGV: token of the caller; ms for which it may write, 0: it failed, and lets others try; ms after
-- the job's end for which it leaves writing to others.
-- Returns 0: it may write; -1: it was written already; else ms after which to try again.
local token, lease_ms, leave_ms = ARGV[1], int(ARGV[2]), int(ARGV[3])
local m = redis.call('HMGET', META, 'published_ms', 'publisher', 'publisher_ms', 'finished_ms')
if m[1] or not m[4] then
  return -1
end
local others = m[2] and m[2] ~= token
if lease_ms == 0 then
  if not others then
    redis.call('HDEL', META, 'publisher', 'publisher_ms')
  end
  return 0
end
local wait_ms = tonumber(m[4]) + leave_ms - now
if others then
  wait_ms = math.max(wait_ms, tonumber(m[3]) - now)
end
if wait_ms > 0 then
  return wait_ms
end
redis.call('HSET', META, 'publisher', token, 'publisher_ms', text(now + lease_ms))
return 0
