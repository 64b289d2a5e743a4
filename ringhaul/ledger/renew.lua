-- Extends a lease and notes how far the attempt is.
-- ARGV: unit, token, lease_ms, "rows,rejected,bytes" of this attempt so far or ''
-- Answers OK; LOST: the lease is another attempt's or the unit is done; STOP: the job does not run.
-- What was done so far is kept when the job was stopped, so that `status` can say how many rows of
-- unfinished units are in the table.
local unit, lease_ms = ARGV[1], int(ARGV[3])
local state = redis.call('HGET', META, 'state')
if redis.call('HGET', OWNER, unit) ~= ARGV[2] then
  return state == 'RUNNING' and 'LOST' or 'STOP'
end
if ARGV[4] ~= '' then
  redis.call('HSET', LIVE, unit, ARGV[4])
end
if state ~= 'RUNNING' then
  keep_for_a_while(LIVE)
  return 'STOP'
end
redis.call('ZADD', LEASE, text(now + lease_ms), unit)
return 'OK'
