-- Marks splitting as complete: the job ends once its units are done. A job without units ends now.
-- ARGV: epoch, number of units that were split
-- Returns the number of units the job has: if that is not the number given, nothing was sealed and
-- the caller adds the missing ones again. -1: not running in this epoch, and not already ended by
-- a seal that this call repeats.
local count = int(ARGV[2])
local m = redis.call('HMGET', META, 'state', 'epoch', 'units', 'sealed')
if not m[1] or m[2] ~= ARGV[1] or (m[1] ~= 'RUNNING' and m[4] ~= '1') then
  return -1
end
local units = tonumber(m[3])
if units == count and m[4] ~= '1' then
  redis.call('HSET', META, 'sealed', '1')
  note_event('split', text(units) .. (units == 1 and ' unit' or ' units'))
  finish_if_done()
end
return units
