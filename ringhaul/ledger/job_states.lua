-- Counts jobs by their state, the newest first.
-- KEYS: ringhaul:jobs (zset)   ARGV: pattern of a job's meta key, most jobs to examine
-- Returns {state, jobs, state, jobs, ...}: PAUSED for a running job that is paused; jobs that are
-- forgotten do not count.
local counts, answer = {}, {}
for _, job in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, ARGV[2] - 1)) do
  -- `pcall`: a key of a wrong type affects its own job only.
  local m = redis.pcall('HMGET', string.format(ARGV[1], job), 'state', 'paused_ms')
  local state = m[1]
  if state then
    state = state == 'RUNNING' and m[2] and 'PAUSED' or state
    counts[state] = (counts[state] or 0) + 1
  end
end
for state, jobs in pairs(counts) do
  answer[#answer + 1] = state
  answer[#answer + 1] = jobs
end
return answer
