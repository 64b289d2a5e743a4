-- Resizes a set to the number of open units: neither done nor quarantined, of jobs that run and are
-- not paused. One script over all jobs, so that a late count cannot undo a newer one: with no
-- worker alive, a job that was counted as 0 would wait forever.
-- KEYS: ringhaul:open (set: 0 .. its size - 1)
-- ARGV: ringhaul:running, pattern of a job's meta key, most members
-- Returns the size.
local open = 0
for _, job in ipairs(redis.call('SMEMBERS', ARGV[1])) do
  -- `pcall`: a key of a wrong type affects its own job only, not all that run beside it.
  local m = redis.pcall('HMGET', string.format(ARGV[2], job), 'state', 'left', 'paused_ms')
  if m[1] == 'RUNNING' and not m[3] then
    open = open + (tonumber(m[2]) or 0)
  end
end
open = math.min(open, tonumber(ARGV[3]))
local size = redis.call('SCARD', KEYS[1])
for number = size, open - 1 do
  redis.call('SADD', KEYS[1], number)
end
for number = open, size - 1 do
  redis.call('SREM', KEYS[1], number)
end
return open
