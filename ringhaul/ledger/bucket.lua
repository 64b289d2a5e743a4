-- Takes rows out of a job's token bucket. The bucket may go into debt; the answer says how long the
-- taker has to wait until its own rows are paid for, so takers of all hosts queue up fairly.
-- KEYS: ringhaul:{job}:rate (hash: rows, at_us)   ARGV: rows, rows per second, burst, ttl_s
-- Answers the wait in ms, 0 if there is none.
local rows, rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local b = redis.call('HMGET', KEYS[1], 'rows', 'at_us')
local level = burst
if b[1] then
  local passed_us = math.max(0, now_us - tonumber(b[2]))
  level = math.min(burst, tonumber(b[1]) + passed_us * rate / 1000000)
end
level = level - rows
redis.call('HSET', KEYS[1], 'rows', string.format('%.6f', level),
  'at_us', string.format('%.0f', now_us))
redis.call('EXPIRE', KEYS[1], ARGV[4])
return level < 0 and math.ceil(-level * 1000 / rate) or 0
