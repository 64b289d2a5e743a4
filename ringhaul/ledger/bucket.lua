-- Takes amounts out of a job's token buckets. A bucket may go into debt; the response says how long
-- the taker has to wait until its own share is paid for, so takers of all hosts queue up fairly.
-- KEYS: ringhaul:{job}:rate (hash: for each bucket `name`, `name:at_us`, `name:per_s`, and in
--   `name:takers` how many units of the job ran at the last draw)
-- ARGV: ttl_s, (name, amount, amount per second, burst)...
-- Returns for each bucket the wait in ms, 0 for none.
-- A new bucket holds no more than its first taker wants, and one whose rate was raised has filled
-- at the old rate so far.
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local leases = redis.pcall('ZCARD', string.sub(KEYS[1], 1, -5) .. 'lease')
local takers = type(leases) == 'number' and string.format('%.0f', leases) or '0'
local waits = {}
for i = 2, #ARGV, 4 do
  local name, amount = ARGV[i], tonumber(ARGV[i + 1])
  local rate, burst = tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local b = redis.call('HMGET', KEYS[1], name, name .. ':at_us', name .. ':per_s')
  local level = math.min(burst, amount)
  if b[1] then
    local passed_us = math.max(0, now_us - tonumber(b[2]))
    local filled = passed_us * math.min(rate, tonumber(b[3])) / 1000000
    level = math.min(burst, tonumber(b[1]) + filled)
  end
  level = level - amount
  redis.call('HSET', KEYS[1], name, string.format('%.6f', level), name .. ':at_us',
    string.format('%.0f', now_us), name .. ':per_s', ARGV[i + 2], name .. ':takers', takers)
  waits[#waits + 1] = level < 0 and math.ceil(-level * 1000 / rate) or 0
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return waits
