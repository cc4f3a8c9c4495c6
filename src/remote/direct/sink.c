/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The provider's place in the group `provider`. goa-ai's providers delete a consumer of the group
 * that is not in two maps of theirs, or was not alive for two graces; so we write these maps as
 * they do, in one script for each change: a hash, its revision `=rev`, and a message to who keeps a
 * copy. `=kind`, of later versions, is kept where it is; earlier ones would take it for a consumer.
 *
 * A consumer is deleted only when nothing is pending for it: Redis would forget what is.
 */

#include "remote/direct/direct.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

/* KEYS: sinks, its channel, keepalive, its channel, the stream. ARGV: what to do, the group, the
 * consumer, the grace in ms. Returns the id of the last entry that the group has delivered. */
static const char place_script[] =
    "local function changed(content, updates, kind, ...)\n"
    "  local rev = string.format('%.0f', redis.call('HINCRBY', content, '=rev', 1))\n"
    "  local message = kind .. ':'\n"
    "  if redis.call('HEXISTS', content, '=kind') == 1 then\n"
    "    redis.call('HSET', content, '=kind', kind)\n"
    "  end\n"
    "  for _, part in ipairs({...}) do\n"
    "    message = message .. struct.pack('<i4', #part) .. part\n"
    "  end\n"
    "  redis.call('PUBLISH', updates, message .. struct.pack('<i4', #rev) .. rev)\n"
    "end\n"
    "local function set(content, updates, key, value)\n"
    "  redis.call('HSET', content, key, value)\n"
    "  changed(content, updates, 'set', key, value)\n"
    "end\n"
    "local function del(content, updates, key)\n"
    "  if redis.call('HDEL', content, key) == 1 then changed(content, updates, 'del', key) end\n"
    "end\n"
    "local function list(name, adds)\n"
    "  local text = redis.call('HGET', KEYS[1], ARGV[2])\n"
    "  local is_json, old = pcall(cjson.decode, text or '[]')\n"
    "  local new, has, had = {}, false, false\n"
    "  if not is_json or type(old) ~= 'table' then old = {} end\n"
    "  for _, one in ipairs(old) do\n"
    "    if one == name then had = true end\n"
    "    if one ~= name or adds then new[#new + 1] = one end\n"
    "  end\n"
    "  if adds and not had then new[#new + 1] = name end\n"
    "  if had == adds then return end\n"
    "  if #new == 0 then del(KEYS[1], KEYS[2], ARGV[2])\n"
    "  else set(KEYS[1], KEYS[2], ARGV[2], cjson.encode(new)) end\n"
    "end\n"
    "local function forget(name)\n"
    "  redis.call('XGROUP', 'DELCONSUMER', KEYS[5], ARGV[2], name)\n"
    "  list(name, false)\n"
    "  del(KEYS[3], KEYS[4], name)\n"
    "end\n"
    "local function field(consumer, name)\n"
    "  for i = 1, #consumer, 2 do\n"
    "    if consumer[i] == name then return consumer[i + 1] end\n"
    "  end\n"
    "end\n"
    "local time = redis.call('TIME')\n"
    "local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)\n"
    "if ARGV[1] == 'leave' then return forget(ARGV[3]) end\n"
    "redis.call('XGROUP', 'CREATECONSUMER', KEYS[5], ARGV[2], ARGV[3])\n"
    "list(ARGV[3], true)\n"
    "set(KEYS[3], KEYS[4], ARGV[3], string.format('%d%06d000', time[1], time[2]))\n"
    "for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[5], ARGV[2])) do\n"
    "  local name = field(consumer, 'name')\n"
    "  local alive = redis.call('HGET', KEYS[3], name)\n"
    "  local idle = field(consumer, 'idle')\n"
    "  if alive and tonumber(alive) then idle = now_ms - tonumber(alive) / 1000000 end\n"
    "  if name ~= ARGV[3] and field(consumer, 'pending') == 0 and idle > 2 * ARGV[4] then\n"
    "    forget(name)\n"
    "  end\n"
    "end\n"
    "for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[5])) do\n"
    "  if field(group, 'name') == ARGV[2] then return field(group, 'last-delivered-id') end\n"
    "end\n";

static void run_place_script(struct remote__direct *direct, const char *what,
                             const struct remote__direct_command *command)
{
    char grace[24];

    snprintf(grace, sizeof(grace), "%lld", (long long)direct->grace_ms);
    DIRECT_ASK(direct, command, peg__str("EVAL"), peg__str(place_script), peg__str("5"),
               peg__str(direct->sinks_key), peg__str(direct->sinks_channel),
               peg__str(direct->keepalive_key), peg__str(direct->keepalive_channel),
               peg__str(direct->key), peg__str(what), peg__str(PULSE_PROVIDERS),
               peg__str(direct->prov->incarnation), peg__str(grace));
}

/* ---- joining ------------------------------------------------------------------------------- */

static void note_position(struct remote__direct *direct, const struct resp_value *reply)
{
    if (reply->kind == RESP_TEXT && reply->text.len < sizeof(direct->last_id))
        snprintf(direct->last_id, sizeof(direct->last_id), PEG_FMT, PEG_ARG(reply->text));
}

static void on_joined(struct remote__direct_command *command, const struct resp_value *reply)
{
    struct remote__direct *direct = command->direct;
    peg_provider *prov = direct->prov;
    peg_error error;

    direct->is_joining = false;
    if (!reply || prov->phase == REMOTE__PROV_ENDED)
        return;
    if (reply->kind == RESP_ERROR) {
        redis_fail_reply(&error, reply);
        remote__direct_report_lost(direct, &error);
        return;
    }
    note_position(direct, reply);
    direct->is_joined = true;
    direct->alive_ns = net_loop_now_ns(prov->loop) + direct->grace_ms * PEG_NS_PER_MS;
    if (direct->phase == DIRECT_SERVING) {
        remote__prov_set_attached(prov, true);
        remote__prov_notify(
            prov, &(peg_provider_event){.kind = PEG_PROVIDER_ATTACHED, .address = prov->peer});
    }
    remote__direct_publish_all(direct);
    remote__direct_read(direct);
    remote__prov_check_end(prov);
}

/* A group that is lost begins again behind what it had delivered, as far as we know, so that no
 * call is missed. One that we never saw begins at the end, as goa-ai's do. */
void remote__direct_join(struct remote__direct *direct)
{
    const char *start = direct->last_id[0] ? direct->last_id : "$";

    if (direct->is_joining || direct->is_joined)
        return;
    direct->is_joining = true;
    /* An error says that it is there already; any other one comes again from the script. */
    DIRECT_ASK(direct, &(struct remote__direct_command){0}, peg__str("XGROUP"), peg__str("CREATE"),
               peg__str(direct->key), peg__str(PULSE_PROVIDERS), peg__str(start),
               peg__str("MKSTREAM"));
    run_place_script(direct, "join", &(struct remote__direct_command){.fn = on_joined});
}

void remote__direct_lose_place(struct remote__direct *direct)
{
    direct->is_joined = false;
}

/* ---- staying ------------------------------------------------------------------------------- */

static void on_alive(struct remote__direct_command *command, const struct resp_value *reply)
{
    if (reply && reply->kind == RESP_ERROR)
        remote__direct_lose_place(command->direct);
    else if (reply)
        note_position(command->direct, reply);
}

/* Several entries in one command. */
struct id_list {
    peg_str args[PEG_LIMIT_DIRECT_IDS + 8];
    size_t n;
};

static void begin_ids(struct remote__direct *direct, struct id_list *list)
{
    list->args[0] = peg__str("XCLAIM");
    list->args[1] = peg__str(direct->key);
    list->args[2] = peg__str(PULSE_PROVIDERS);
    list->args[3] = peg__str(direct->prov->incarnation);
    list->args[4] = peg__str("0");
    list->n = 5;
}

static bool has_ids(const struct id_list *list)
{
    return list->n > 5;
}

/* `idle`: NULL, or what their idle time is set to. */
static void send_ids(struct remote__direct *direct, struct id_list *list, const char *idle)
{
    if (has_ids(list)) {
        if (idle) {
            list->args[list->n++] = peg__str("IDLE");
            list->args[list->n++] = peg__str(idle);
        }
        list->args[list->n++] = peg__str("JUSTID");
        remote__direct_ask(direct, list->args, list->n, &(struct remote__direct_command){0});
    }
    begin_ids(direct, list);
}

static void add_id(struct remote__direct *direct, struct id_list *list, peg_str id,
                   const char *idle)
{
    list->args[list->n++] = id;
    if (list->n == PEG_LIMIT_DIRECT_IDS + 5)
        send_ids(direct, list, idle);
}

/* XCLAIM by who has an entry sets its idle time to 0. One that another reader has taken
 * meanwhile runs there too; each acknowledges it at its end. */
static void renew_calls(struct remote__direct *direct)
{
    struct id_list list;

    begin_ids(direct, &list);
    PEG__MAP_EACH(&direct->prov->calls, entry)
    {
        const struct remote__prov_call *call = entry->value;

        add_id(direct, &list, call->key, NULL);
    }
    send_ids(direct, &list, NULL);
}

/* ---- what dead ones left ------------------------------------------------------------------- */

static void on_claimed(struct remote__direct_command *command, const struct resp_value *reply)
{
    struct remote__direct *direct = command->direct;
    const struct resp_value *cursor = reply ? resp_item(reply, 0) : NULL;
    const struct resp_value *entries = reply ? resp_item(reply, 1) : NULL;

    direct->is_claiming = false;
    if (direct->prov->phase == REMOTE__PROV_ENDED || !reply)
        return;
    if (!cursor || cursor->kind != RESP_TEXT || cursor->text.len >= DIRECT_ENTRY_ID || !entries) {
        remote__direct_lose_place(direct);
        return;
    }
    snprintf(direct->cursor, sizeof(direct->cursor), PEG_FMT, PEG_ARG(cursor->text));
    remote__direct_take_entries(direct, entries, 2);
    if (strcmp(direct->cursor, "0-0") != 0)
        remote__direct_claim(direct);
    else if (!resp_is_list(entries) || entries->n_items == 0)
        direct->has_given_up = false;
    remote__direct_read(direct);
}

void remote__direct_claim(struct remote__direct *direct)
{
    const size_t room = remote__direct_room(direct);
    const size_t most = room < PEG_LIMIT_DIRECT_READ ? room : PEG_LIMIT_DIRECT_READ;
    char grace[24];
    char count[24];

    if (direct->is_claiming || !direct->is_joined || direct->phase != DIRECT_SERVING || !room)
        return;
    snprintf(grace, sizeof(grace), "%lld", (long long)direct->grace_ms);
    snprintf(count, sizeof(count), "%zu", most);
    direct->is_claiming = true;
    DIRECT_ASK(direct, &(struct remote__direct_command){.fn = on_claimed}, peg__str("XAUTOCLAIM"),
               peg__str(direct->key), peg__str(PULSE_PROVIDERS),
               peg__str(direct->prov->incarnation), peg__str(grace), peg__str(direct->cursor),
               peg__str("COUNT"), peg__str(count));
}

/* ---- time ---------------------------------------------------------------------------------- */

static void arm_tick(struct remote__direct *direct)
{
    struct net_loop *loop = direct->prov->loop;
    const int64_t quarter_ms = direct->grace_ms / 4;
    const int64_t ms =
        quarter_ms < PEG_LIMIT_DIRECT_TICK_MS ? quarter_ms : PEG_LIMIT_DIRECT_TICK_MS;

    net_loop_arm(loop, &direct->tick, net_loop_now_ns(loop) + ms * PEG_NS_PER_MS);
}

static void stay_alive(struct remote__direct *direct)
{
    const int64_t now_ns = net_loop_now_ns(direct->prov->loop);
    const int64_t grace_ns = direct->grace_ms * PEG_NS_PER_MS;

    if (now_ns >= direct->renew_ns) {
        renew_calls(direct);
        direct->renew_ns = now_ns + grace_ns / 4;
    }
    if (now_ns >= direct->alive_ns) {
        run_place_script(direct, "alive", &(struct remote__direct_command){.fn = on_alive});
        direct->alive_ns = now_ns + grace_ns;
    }
}

/* Much may stand before a ping, and a provider that is full must answer it all the same. Several
 * times in the time that a gateway waits for pongs. */
static void seek_ping(struct remote__direct *direct)
{
    const int64_t now_ns = net_loop_now_ns(direct->prov->loop);

    if (remote__direct_room(direct) || now_ns < direct->seek_ns)
        return;
    direct->seeks_ping = true;
    direct->seek_ns = now_ns + direct->grace_ms / 4 * PEG_NS_PER_MS;
}

static void on_tick(struct net_timer *timer)
{
    struct remote__direct *direct = peg__container_of(timer, struct remote__direct, tick);

    arm_tick(direct);
    if (!redis_session_is_ready(direct->commands))
        return;
    if (!direct->is_joined) {
        remote__direct_join(direct);
        return;
    }
    stay_alive(direct);
    remote__direct_publish_all(direct);
    seek_ping(direct);
    remote__direct_claim(direct);
    remote__direct_read(direct);
}

void remote__direct_start_ticking(struct remote__direct *direct)
{
    direct->tick.fn = on_tick;
    arm_tick(direct);
}

/* ---- leaving ------------------------------------------------------------------------------- */

static void on_left(struct remote__direct_command *command, const struct resp_value *reply)
{
    (void)reply;
    remote__prov_end(command->direct->prov, PEG_OK, NULL);
}

/* Behind the commands before it. */
static void end_when_sent(struct remote__direct *direct)
{
    DIRECT_ASK(direct, &(struct remote__direct_command){.fn = on_left}, peg__str("PING"));
}

/* No call is here any more: entries that are pending found no room, or were never started. */
static void on_pending(struct remote__direct_command *command, const struct resp_value *reply)
{
    struct remote__direct *direct = command->direct;
    const struct resp_value *item = reply ? reply + 1 : NULL;
    struct id_list list;
    char grace[24];

    if (!reply || !resp_is_list(reply)) {
        on_left(command, reply);
        return;
    }
    if (reply->n_items == 0) {
        run_place_script(direct, "leave", &(struct remote__direct_command){.fn = on_left});
        return;
    }
    snprintf(grace, sizeof(grace), "%lld", (long long)direct->grace_ms);
    begin_ids(direct, &list);
    for (size_t i = 0; i < reply->n_items; i++, item = resp_next(item)) {
        const struct resp_value *id = resp_item(item, 0);

        if (id && id->kind == RESP_TEXT)
            add_id(direct, &list, id->text, grace);
    }
    send_ids(direct, &list, grace);
    end_when_sent(direct);
}

void remote__direct_leave(struct remote__direct *direct)
{
    DIRECT_ASK(direct, &(struct remote__direct_command){.fn = on_pending}, peg__str("XPENDING"),
               peg__str(direct->key), peg__str(PULSE_PROVIDERS), peg__str("-"), peg__str("+"),
               peg__str("1000"), peg__str(direct->prov->incarnation));
}
