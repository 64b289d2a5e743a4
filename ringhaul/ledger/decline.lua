-- The unit's message reached a worker that cannot take it: it is issued again, by another message.
-- ARGV: unit, epoch, delay_ms, reason or ''
-- Answers OK; LOST: the unit is not out for this epoch's messages (any more).
local unit, delay_ms = ARGV[1], int(ARGV[3])
local m = redis.call('HMGET', META, 'state', 'epoch')
if m[1] ~= 'RUNNING' or m[2] ~= ARGV[2] or not redis.call('ZSCORE', ISSUED, unit) then
  return 'LOST'
end
take_out(unit)
put_back(unit, now + delay_ms)
-- A job that others work on goes on; in one that nobody works on the reason is all there is to see.
if ARGV[4] ~= '' and redis.call('ZCARD', LEASE) == 0 then
  redis.call('HSET', META, 'declined', ARGV[4], 'declined_ms', text(now))
end
return 'OK'
