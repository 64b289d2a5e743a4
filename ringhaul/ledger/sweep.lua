-- Finds units whose worker or whose message was lost and lets them be issued again. Any number of
-- sweepers may run it at any time.
-- ARGV: most units of each kind to look at
-- Answers {state, leases that ran out, units issued but never claimed}; state '' if there is no job.
--
-- A unit is taken for unclaimed after `unclaimed_ms`. While nothing of the job gets claimed at all
-- the queue is probably just long, and each further look waits twice as long, up to 16 times, so
-- that waiting does not fill the broker with copies of the same messages.
local most = int(ARGV[1])
local m = redis.call('HMGET', META, 'state', 'unclaimed_ms', 'silent')
if not m[1] then
  return { '', 0, 0 }
end
local expired = redis.call('ZRANGEBYSCORE', LEASE, '-inf', text(now), 'LIMIT', 0, most)
if m[1] ~= 'RUNNING' then
  for _, unit in ipairs(expired) do
    end_lease(unit)
  end
  return { m[1], #expired, 0 }
end
for _, unit in ipairs(expired) do
  reclaim(unit)
end
local wait_ms = tonumber(m[2]) * 2 ^ math.min(tonumber(m[3] or '0'), 4)
local unclaimed = redis.call('ZRANGEBYSCORE', ISSUED, '-inf', text(now - wait_ms), 'LIMIT', 0, most)
for _, unit in ipairs(unclaimed) do
  take_out(unit)
  put_back(unit, now)
end
if #unclaimed > 0 then
  redis.call('HINCRBY', META, 'silent', 1)
end
return { redis.call('HGET', META, 'state'), #expired, #unclaimed }
