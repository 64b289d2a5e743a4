-- Returns what the sharing of workers depends on: living workers and jobs with open units.
-- One script over all jobs, so that each commit costs one request.
-- KEYS: ringhaul:running (set)   ARGV: pattern of a job's meta key, ringhaul:workers (zset)
-- Returns {now_ms, members of the living workers, {job, queue, priority, units left, pace}...}
-- without jobs that are paused or over.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local alive = redis.call('ZRANGEBYSCORE', ARGV[2], string.format('(%.0f', now), '+inf')
local answer = { now, alive }
for _, job in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  -- `pcall`: a key of a wrong type affects its own job only, not all that run beside it.
  local m = redis.pcall('HMGET', string.format(ARGV[1], job), 'state', 'paused_ms', 'queue',
    'priority', 'left', 'pace')
  if m[1] == 'RUNNING' and not m[2] then
    answer[#answer + 1] = { job, m[3] or '', m[4] or '', tonumber(m[5]) or 0, m[6] or '' }
  end
end
return answer
