-- Appends units. Existing units are left as they are, so a call may be repeated.
-- ARGV: epoch, number of the first unit, spec of each unit...
-- Returns the number of units the job has now: less than `first` if units before it are missing
-- (the server lost the end of its log; nothing was appended). -1: not running in this epoch.
local first = int(ARGV[2])
local m = redis.call('HMGET', META, 'state', 'epoch', 'units', 'sealed')
if m[1] ~= 'RUNNING' or m[2] ~= ARGV[1] then
  return -1
end
local units = tonumber(m[3])
local after = first + #ARGV - 2
if first > units or after <= units or m[4] == '1' then
  return units
end
for unit = units, after - 1 do
  redis.call('HSET', bucket('units', unit), text(unit), ARGV[unit - first + 3])
end
redis.call('HSET', META, 'units', text(after))
redis.call('HINCRBY', META, 'left', text(after - units))
note_progress()
return after
