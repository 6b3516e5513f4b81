-- Inserts a record, unless its key was invalidated recently.
-- KEYS[1]: the key. ARGV: the invalidation marker, the record, its time to live in milliseconds.
-- pcall: a value of another type is replaced like any value that is not a record.
if redis.pcall('GETRANGE', KEYS[1], 0, #ARGV[1]) == ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
