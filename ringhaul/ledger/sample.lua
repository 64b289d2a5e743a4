-- Samples a running job if its last sample is old enough, and notes which hosts came or went.
-- Any number of keepers may run it at any time.
-- ARGV: when the caller looked at the workers (ms), how many work for the job, their hosts, sorted...
--   '' and no hosts: unknown, as of a paused job; no arguments: take none
-- Returns the ms until the next sample is due; -1 if the job does not run.
local HOSTS_NAMED = 3
local SAMPLING = JOB .. 'sampling'
local _, append_sample, keep_history = history()

-- Notes hosts of `list` that are not in `other`: each as an event, or many as one.
local function note_hosts(kind, list, other)
  local known, found = {}, {}
  for _, host in ipairs(other) do
    known[host] = true
  end
  for _, host in ipairs(list) do
    if not known[host] then
      found[#found + 1] = host
    end
  end
  if #found > HOSTS_NAMED then
    note_event(kind, text(#found) .. ' hosts: ' .. table.concat(found, ', '))
    return
  end
  for _, host in ipairs(found) do
    note_event(kind, '', host)
  end
end

local function compare_hosts()
  local s = redis.call('HMGET', SAMPLING, 'looked_ms', 'names')
  if ARGV[2] == '' or int(ARGV[1]) < tonumber(s[1] or '0') then
    return -- unknown, or another keeper looked later
  end
  local hosts, before = {}, {}
  for i = 3, #ARGV do
    hosts[#hosts + 1] = ARGV[i]
  end
  local names = table.concat(hosts, '\n')
  redis.call('HSET', SAMPLING, 'looked_ms', ARGV[1], 'workers', ARGV[2], 'hosts', text(#hosts),
    'names', names)
  keep_history(SAMPLING)
  if names == s[2] then
    return
  end
  for host in string.gmatch(s[2] or '', '[^\n]+') do
    before[#before + 1] = host
  end
  note_hosts('host lost', before, hosts)
  note_hosts('host joined', hosts, before)
end

local function wait_ms()
  local s = redis.call('HMGET', SAMPLING, 'at_ms', 'every_ms')
  -- A little early is better than a whole beat late.
  local every_ms = tonumber(s[2] or SAMPLE_EVERY_MS) * 0.9
  local left_ms = math.max(math.ceil(tonumber(s[1] or '0') + every_ms - now), 0)
  return left_ms
end

if redis.call('HGET', META, 'state') ~= 'RUNNING' then
  return -1
end
local readable, left_ms = pcall(function()
  if #ARGV == 0 then
    return wait_ms()
  end
  compare_hosts()
  if wait_ms() == 0 then
    append_sample()
  end
  return wait_ms()
end)
return readable and left_ms or SAMPLE_EVERY_MS
