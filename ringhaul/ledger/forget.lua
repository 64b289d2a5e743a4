-- Drops jobs that no longer exist from a list of jobs by time.
-- KEYS: a zset of job -> ms   ARGV: pattern of a job's meta key, age in ms from which a job may be
--   gone, most jobs to examine, any whole number from 0
-- Returns the dropped jobs.
--
-- Jobs that never ended stay, and are among the oldest forever: the number selects which stretch
-- of the old ones to examine, so that these never hide the others.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local until_ms, most = string.format('%.0f', now - ARGV[2]), tonumber(ARGV[3])
local old = redis.call('ZCOUNT', KEYS[1], '-inf', until_ms)
local first = tonumber(ARGV[4]) % math.max(old - most + 1, 1)
local gone = {}
local jobs = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', until_ms, 'LIMIT', first, most)
for _, job in ipairs(jobs) do
  if redis.call('EXISTS', string.format(ARGV[1], job)) == 0 then
    redis.call('ZREM', KEYS[1], job)
    gone[#gone + 1] = job
  end
end
return gone
