# SPDX-License-Identifier: Apache-2.0
"""Replicated maps: the hash map:<name>:content, the channel map:<name>:updates, and scripts that change the one and
publish on the other. The scripts are ours; the commands they run are the captured ones, in their order.

Generation 0 counts no revisions, 1 counts them in the field =rev, 2 also keeps the kind of the last change in =kind.
"""

import contextlib
import hashlib
import json
import struct

from .redis import RedisError, Subscription

# Of a join, of which the first also brings the script of the lease. A map has more scripts than the peers of a
# registry ever run: only those that they run are written here, and loaded as often as to give the same number.
LOADS = {0: 11, 1: 12, 2: 12}

CHANGED = {
    0: "redis.call('PUBLISH', KEYS[2], %(message)s)",
    1: """local rev = tostring(redis.call('HINCRBY', KEYS[1], '=rev', 1))
redis.call('PUBLISH', KEYS[2], %(message)s .. struct.pack('ic0', #rev, rev))""",
    2: """local rev = tostring(redis.call('HINCRBY', KEYS[1], '=rev', 1))
redis.call('HSET', KEYS[1], '=kind', '%(kind)s')
redis.call('PUBLISH', KEYS[2], %(message)s .. struct.pack('ic0', #rev, rev))"""}
SET = {"message": "'set:' .. struct.pack('ic0ic0', #ARGV[1], ARGV[1], #value, value)", "kind": "set"}
DEL = {"message": "'del:' .. struct.pack('ic0', #ARGV[1], ARGV[1])", "kind": "del"}

SCRIPTS = {
    "set": """local value = ARGV[2]
local before = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], value)
{set}
return before""",
    "append": """local value, before = nil, redis.call('HGET', KEYS[1], ARGV[1])
{append}
redis.call('HSET', KEYS[1], ARGV[1], value)
{set}
return value""",
    "remove": """local value, before = nil, redis.call('HGET', KEYS[1], ARGV[1])
if not before then return nil end
local list = {{}}
for _, item in ipairs(cjson.decode(before)) do
  if item ~= ARGV[2] then list[#list + 1] = item end
end
if #list == 0 then
  redis.call('HDEL', KEYS[1], ARGV[1])
  {del}
  return nil
end
value = cjson.encode(list)
redis.call('HSET', KEYS[1], ARGV[1], value)
{set}
return value""",
    "delete": """local before = redis.call('HGET', KEYS[1], ARGV[1])
if not before then return nil end
redis.call('HDEL', KEYS[1], ARGV[1])
{del}
return before""",
    "test_and_set": """local value, before = ARGV[3], redis.call('HGET', KEYS[1], ARGV[1])
if before == ARGV[2] then
  redis.call('HSET', KEYS[1], ARGV[1], value)
  {set}
end
return before""",
    "destroy": """local rev = redis.call('HINCRBY', KEYS[1], '=rev', 1)
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], '=rev', rev, '=kind', 'destroy')
redis.call('PUBLISH', KEYS[2], 'destroy:' .. rev)
return rev"""}

APPEND = {0: "value = before and before .. ',' .. ARGV[2] or ARGV[2]",
          1: """local list = before and cjson.decode(before) or {}
list[#list + 1] = ARGV[2]
value = cjson.encode(list)"""}
APPEND[2] = APPEND[1]

LEASE = """local until_ms = redis.call('GET', KEYS[1])
if until_ms and tonumber(until_ms) > tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1"""


def scripts_of(generation):
    change = CHANGED[generation]
    return {name: text.format(set=change % SET, append=APPEND[generation], **{"del": change % DEL})
            for name, text in SCRIPTS.items()}


TEXTS = {generation: scripts_of(generation) for generation in LOADS}
SHA = {text: hashlib.sha1(text.encode()).hexdigest()
       for text in [LEASE] + [text for texts in TEXTS.values() for text in texts.values()]}
# For those who read what MONITOR shows.
NAMES = {SHA[text]: name for texts in TEXTS.values() for name, text in texts.items()} | {SHA[LEASE]: "lease"}


def load_scripts(connection, generation, n):
    texts = list(TEXTS[generation].values())
    connection.call_many([("SCRIPT", "LOAD", texts[i % len(texts)]) for i in range(n)])


class Map:
    """A replica that is written through."""

    def __init__(self, pool, name, generation, connection=None, with_lease=False):
        self.pool, self.name, self.generation = pool, name, generation
        self.content_key, self.channel = f"map:{name}:content", f"map:{name}:updates"
        self.content = {}
        with contextlib.ExitStack() as stack:
            connection = connection or stack.enter_context(pool.one())
            if with_lease:
                connection.call("SCRIPT", "LOAD", LEASE)
            load_scripts(connection, generation, LOADS[generation])
            self.updates = Subscription(pool, self.channel)
            fields = connection.call("HGETALL", self.content_key)
        for key, value in zip(fields[::2], fields[1::2]):
            self.put(key, value)

    def put(self, key, value):
        if not key.startswith(b"="):
            self.content[key.decode()] = value.decode()

    def refresh(self):
        for message in self.updates.messages():
            kind, _, body = message.partition(b":")
            if kind == b"set":
                self.put(*strings(body)[:2])
            elif kind == b"del":
                self.content.pop(strings(body)[0].decode(), None)
            else:  # reset, destroy
                self.content.clear()

    def run(self, script, *arguments, connection=None):
        words = ("EVALSHA", SHA[TEXTS[self.generation][script]], 2, self.content_key, self.channel, *arguments)
        return (connection or self.pool).call(*words)

    def set(self, key, value, connection=None):
        self.content[key] = str(value)
        return self.run("set", key, value, connection=connection)

    def append(self, key, value, connection=None):
        return self.run("append", key, value, connection=connection)

    def remove(self, key, value):
        if self.generation:
            return self.run("remove", key, value)
        return None

    def delete(self, key):
        self.content.pop(key, None)
        return self.run("delete", key)

    def items(self, key):
        """The list that is kept in a field."""
        text = self.content.get(key, "")
        return json.loads(text) if text.startswith("[") else text.split(",") if text else []

    def close(self):
        self.updates.close()


def strings(body):
    """Strings behind their lengths."""
    found, at = [], 0
    while at + 4 <= len(body):
        (n,) = struct.unpack_from("<i", body, at)
        found.append(body[at + 4:at + 4 + n])
        at += 4 + n
    return found


def destroy_stream(pool, stream, generation):
    """What the agent does with a result stream: three commands that are not one step. Generation 0 leaves the map
    behind, 2 a hash of two fields."""
    with pool.one() as connection:
        connection.call("DEL", "pulse:stream:" + stream)
        name = f"stream:{stream}:sinks"
        if generation == 1:
            connection.call("DEL", f"map:{name}:content")
            connection.call("PUBLISH", f"map:{name}:updates", "reset:*")
        elif generation == 2 and connection.call("EXISTS", f"map:{name}:content"):
            sinks = Map(pool, name, generation, connection)
            with contextlib.suppress(RedisError):
                sinks.run("destroy", "*", connection=connection)
            sinks.close()
