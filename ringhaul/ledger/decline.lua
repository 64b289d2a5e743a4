-- Gives back a unit whose message reached a worker that cannot process it; it is issued again.
-- ARGV: unit, epoch, delay_ms, reason or ''
-- Returns OK; LOST: the unit is not (or no longer) issued for messages of this epoch.
local unit, delay_ms = ARGV[1], int(ARGV[3])
local m = redis.call('HMGET', META, 'state', 'epoch')
if m[1] ~= 'RUNNING' or m[2] ~= ARGV[2] or not redis.call('ZSCORE', ISSUED, unit) then
  return 'LOST'
end
take_out(unit)
put_back(unit, now + delay_ms)
note_event('unit released', ARGV[4], '', unit)
-- The reason only matters while no worker makes progress on the job.
if ARGV[4] ~= '' and redis.call('ZCARD', LEASE) == 0 then
  redis.call('HSET', META, 'declined', ARGV[4], 'declined_ms', text(now))
end
return 'OK'
