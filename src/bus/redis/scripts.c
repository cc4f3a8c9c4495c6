/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Time is the server's own throughout, so no clock of a node decides what has ended.
 *
 * With allow-oom a script writes also when the server's memory is full. Without leases, the epoch
 * and the secret each node would be fenced, and without what nodes and providers say of themselves
 * all would count as gone: calls that run would be given up.
 */

#include "bus/redis/internal.h"

/* clang-format off */
#define ALLOW_OOM "#!lua flags=allow-oom\n"

/* KEYS values, index; ARGV key, expected revision or '*', 's' or 'd', value, channel, the longest
 * value that is published, the most keys. -> written (2: there are too many keys), the key's
 * revision, the map's revision before and now. The index has each key ('k' before it) at its
 * revision, and 'r' at the map's. A change is published with the revision before it, so a
 * reader that missed one notices at the next. */
#define MAP_SET \
"local key, want, how, value = ARGV[1], ARGV[2], ARGV[3], ARGV[4]\n" \
"local last = tonumber(redis.call('ZSCORE', KEYS[2], 'r') or 0)\n" \
"local has = tonumber(redis.call('ZSCORE', KEYS[2], 'k' .. key) or 0)\n" \
"if want ~= '*' and tonumber(want) ~= has then return {0, has, last, last} end\n" \
"if how == 'd' and has == 0 then return {1, 0, last, last} end\n" \
"if how == 's' and has == 0 and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[7]) then\n" \
"  return {2, has, last, last}\n" \
"end\n" \
"local t = redis.call('TIME')\n" \
"local now = math.max(last + 1, t[1] * 1000 + math.floor(t[2] / 1000))\n" \
"local text = string.format('%.0f', now)\n" \
"if how == 's' then\n" \
"  redis.call('HSET', KEYS[1], key, text .. ':' .. value)\n" \
"  redis.call('ZADD', KEYS[2], now, 'k' .. key)\n" \
"  if #value > tonumber(ARGV[6]) then how, value = 'f', '' end\n" \
"else\n" \
"  redis.call('HDEL', KEYS[1], key)\n" \
"  redis.call('ZREM', KEYS[2], 'k' .. key)\n" \
"  value = ''\n" \
"end\n" \
"redis.call('ZADD', KEYS[2], now, 'r')\n" \
"redis.call('PUBLISH', ARGV[5], string.format('%.0f', last) .. ' ' .. text .. ' ' .. how .. ' '\n" \
"  .. #key .. ' ' .. key .. value)\n" \
"return {1, ARGV[3] == 's' and now or 0, last, now}\n"

const char *const redis_scripts[REDIS_N_SCRIPTS] = {
[REDIS_LEASE] =
ALLOW_OOM
"local me, t, r = ARGV[1], redis.call('TIME'), {}\n"
"local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
"for i = 2, #KEYS do\n"
"  local mode, ms, has = ARGV[2*i-2], ARGV[2*i-1], redis.call('GET', KEYS[i])\n"
"  if has == me or string.find(mode, 'T') or (not has and string.find(mode, 'F')) then\n"
"    redis.call('SET', KEYS[i], me, 'PX', ms)\n"
"    has = me\n"
"    if string.find(mode, 'o') then\n"
"      redis.call('ZADD', KEYS[1], now + ms, me)\n"
"      redis.call('PEXPIRE', KEYS[1], 86400000 + ms)\n"
"    end\n"
"  end\n"
"  r[i-1] = has or ''\n"
"end\n"
"return r\n",

[REDIS_RELEASE] =
ALLOW_OOM
"if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('UNLINK', KEYS[2]) end\n"
"if ARGV[3] == 'o' and redis.call('ZREM', KEYS[1], ARGV[1]) == 1 and ARGV[2] ~= '' then\n"
"  redis.call('PUBLISH', ARGV[2], ARGV[1])\n"
"end\n"
"return 1\n",

[REDIS_REAP] =
ALLOW_OOM
"local t = redis.call('TIME')\n"
"local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
"local due = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, 64)\n"
"for _, who in ipairs(due) do\n"
"  local left = redis.call('PTTL', ARGV[1] .. who)\n"
"  if left > 0 then\n"
"    redis.call('ZADD', KEYS[1], now + left, who)\n"
"  else\n"
"    redis.call('ZREM', KEYS[1], who)\n"
"    redis.call('PUBLISH', ARGV[2], who)\n"
"  end\n"
"end\n"
"return #due\n",

[REDIS_MAP_SET] = MAP_SET,
[REDIS_MAP_SET_ALWAYS] = ALLOW_OOM MAP_SET,

[REDIS_AGREE] =
(ALLOW_OOM
"local has = redis.call('GET', KEYS[1])\n"
"if not has then redis.call('SET', KEYS[1], ARGV[1]) end\n"
"return has\n"),

[REDIS_EPOCH] =
(ALLOW_OOM
"if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) end\n"
"return redis.call('GET', KEYS[1])\n"),
};
/* clang-format on */
