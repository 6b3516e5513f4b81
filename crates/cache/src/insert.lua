-- Inserts records, except those whose key was invalidated recently.
-- KEYS: the keys. ARGV: the invalidation marker; for each key a record, and its time to live in milliseconds.
-- pcall: a value of another type is replaced like any value that is not a record.
local marker = ARGV[1]
for index, key in ipairs(KEYS) do
  if redis.pcall('GETRANGE', key, 0, #marker) ~= marker then
    redis.call('SET', key, ARGV[2 * index], 'PX', ARGV[2 * index + 1])
  end
end
return 1
