-- Returns what the sharing of workers depends on: living workers and jobs with open units.
-- One script over all jobs, so that each commit costs one request.
-- KEYS: ringhaul:running (set)   ARGV: pattern of a job's meta key, ringhaul:workers (zset),
--   ringhaul:slots (string), '1' to add workers up
-- Returns {now_ms, members of the living workers, {job, queue, priority, units left, pace, units that
--   run, turns in thousandths and units that are enough (see turns.lua)}...}
-- without jobs that are paused or over. Workers added up: one member ":0:SLOTS:QUEUES" stands for all
-- that consume the same queues. Their sums are kept for a second, or until a worker comes or leaves:
-- a commit must not cost more the more workers there are.
local KEPT_MS = 1000
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function members()
  return redis.call('ZRANGEBYSCORE', ARGV[2], string.format('(%.0f', now), '+inf')
end

local function added_up()
  local kept = redis.pcall('GET', ARGV[3])
  local at, sums = string.match(type(kept) == 'string' and kept or '', '^(%d+)\n(.*)$')
  if not at or math.abs(now - tonumber(at)) >= KEPT_MS then
    local slots, lines = {}, {}
    for _, member in ipairs(members()) do
      local count, queues = string.match(member, ':%d+:(%d+):([^:]*)$')
      if count then
        slots[queues] = (slots[queues] or 0) + tonumber(count)
      end
    end
    for queues, count in pairs(slots) do
      lines[#lines + 1] = string.format(':0:%.0f:%s\n', count, queues)
    end
    table.sort(lines)
    sums = table.concat(lines)
    redis.call('SET', ARGV[3], string.format('%.0f\n%s', now, sums), 'PX', 60000)
  end
  local found = {}
  for line in string.gmatch(sums, '[^\n]+') do
    found[#found + 1] = line
  end
  return found
end

local answer = { now, ARGV[4] == '1' and added_up() or members() }
for _, job in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  -- `pcall`: a key of a wrong type affects its own job only, not all that run beside it.
  local m = redis.pcall('HMGET', string.format(ARGV[1], job), 'state', 'paused_ms', 'queue',
    'priority', 'left', 'pace')
  if m[1] == 'RUNNING' and not m[2] then
    local running, waits, enough = 0, 0, 0
    if m[6] and m[6] ~= '' then
      local key = string.sub(string.format(ARGV[1], job), 1, -5)
      local leases = redis.pcall('ZCARD', key .. 'lease')
      running = type(leases) == 'number' and leases or 0
      waits, enough = turns(key .. 'rate')
    end
    local left = tonumber(m[5]) or 0
    answer[#answer + 1] = { job, m[3] or '', m[4] or '', left, m[6] or '', running,
      math.floor(waits * 1000), enough }
  end
end
return answer
