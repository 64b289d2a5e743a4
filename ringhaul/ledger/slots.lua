-- Returns the living workers, as "host:pid:slots:queues".
-- KEYS: ringhaul:workers (zset)
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf')
