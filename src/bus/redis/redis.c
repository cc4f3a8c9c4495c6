/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bus of a loop on Redis: what the other files of this room make, put together.
 *
 *   a round: requests --> queue --flush, at its end--> leases, the epoch, one write
 *   session: ready --> handshake --> is_ready;  lost --> PEG_EIO to all, and again
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/redis/internal.h"

/* ---- time ---------------------------------------------------------------------------------- */

static int64_t now_ns(struct bus *bus)
{
    return net_loop_now_ns(redis_bus_of(bus)->loop);
}

static int64_t now_ms(struct bus *bus)
{
    return (now_ns(bus) + redis_bus_of(bus)->offset_ns) / PEG_NS_PER_MS;
}

static void arm_timer(struct bus *bus, struct net_timer *timer, int64_t due_ns)
{
    net_loop_arm(redis_bus_of(bus)->loop, timer, due_ns);
}

static void disarm_timer(struct bus *bus, struct net_timer *timer)
{
    net_loop_disarm(redis_bus_of(bus)->loop, timer);
}

static uint64_t current_epoch(struct bus *bus)
{
    return redis_bus_of(bus)->epoch;
}

/* Until Redis says what time it is. */
static int64_t measure_offset_ns(struct net_loop *loop)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * PEG_NS_PER_S + now.tv_nsec - net_loop_now_ns(loop);
}

/* ---- a round ------------------------------------------------------------------------------- */

/* What waits for a connection is answered in time, and all of it together: it is as old as the
 * oldest. */
static void give_up(struct net_timer *timer)
{
    struct redis_bus *bus = peg__container_of(timer, struct redis_bus, hold);

    if (bus->is_ready)
        return;
    redis_bus_hold(bus);
    bus->n_in_group = 0;
    bus->n_leases = 0;
    redis_queue_fail(&bus->queue);
    redis_commands_reject(&bus->leases, PEG_EIO);
    redis_commands_reject(&bus->reads, PEG_EIO);
    redis_bus_release(bus);
}

static void flush_round(struct net_later *later)
{
    struct redis_bus *bus = peg__container_of(later, struct redis_bus, flush);

    if (!bus->is_ready) {
        if (!bus->hold.is_armed)
            net_loop_arm(bus->loop, &bus->hold,
                         peg__clock_after_ms(net_loop_now_ns(bus->loop), PEG_LIMIT_REDIS_HOLD_MS));
        return;
    }
    redis_bus_hold(bus);
    if (bus->has_stepped && !bus->has_asked_epoch)
        redis_put_new_epoch(bus);
    redis_put_leases(bus);
    if (!bus->is_dead) {
        const size_t n_before = bus->queue.requests.n;

        redis_put_epoch(bus);
        redis_session_send(bus->session, &bus->queue);
        if (bus->queue.requests.n < n_before) {
            atomic_fetch_add_explicit(&bus->hub->n_pipelines, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&bus->hub->n_commands, n_before, memory_order_relaxed);
        }
    }
    redis_bus_release(bus);
}

static void send_late(struct net_timer *timer)
{
    redis_send_late(peg__container_of(timer, struct redis_bus, late_timer));
}

static void report_maps(struct net_later *later)
{
    redis_maps_report(peg__container_of(later, struct redis_bus, report));
}

static void check_server(struct net_timer *timer)
{
    struct redis_bus *bus = peg__container_of(timer, struct redis_bus, check);

    net_loop_arm(bus->loop, timer,
                 peg__clock_after_ms(net_loop_now_ns(bus->loop), bus->hub->check_ms));
    redis_ledger_sweep(bus->hub->ledger, now_ms(&bus->bus));
    redis_count_fenced(bus);
    if (!bus->is_ready)
        return;
    bus->n_in_group++;
    redis_put_reap(bus);
}

/* ---- events of the session ----------------------------------------------------------------- */

static void on_ready(void *user)
{
    redis_handshake((struct redis_bus *)user);
}

static void on_drained(void *user)
{
    struct redis_bus *bus = (struct redis_bus *)user;

    net_loop_later(bus->loop, &bus->flush);
}

static void on_published(struct redis_bus *bus, peg_str channel, peg_str bytes)
{
    static const peg_str loop = PEG_LIT("loop:");
    const peg_str prefix = peg__str(bus->hub->channels);
    peg_str rest;

    if (!peg__str_starts(channel, prefix))
        return;
    rest = peg__str_from(channel, prefix.len);
    if (peg__str_starts(rest, loop)) {
        redis_on_message(bus, bytes);
        return;
    }
    if (peg__str_is(rest, "lost")) {
        redis_on_lost_loop(bus, bytes);
        return;
    }
    for (unsigned i = 0; i < BUS_N_MAPS; i++) {
        if (peg__str_is(rest, redis_map_channels[i]))
            redis_on_map_change(bus, (enum bus_map)i, bytes);
    }
}

static void on_push(void *user, const struct resp_value *push)
{
    struct redis_bus *bus = (struct redis_bus *)user;
    const struct resp_value *what = resp_item(push, 0);
    const struct resp_value *channel = resp_item(push, 1);
    const struct resp_value *bytes = resp_item(push, 2);

    if (!what || !channel || what->kind != RESP_TEXT)
        return;
    redis_bus_hold(bus);
    if (peg__str_is(what->text, "invalidate"))
        redis_on_invalidate(bus, channel);
    else if (bytes && channel->kind == RESP_TEXT && bytes->kind == RESP_TEXT &&
             peg__str_is(what->text, "message"))
        on_published(bus, channel->text, bytes->text);
    redis_bus_release(bus);
}

/* A reason of the same kind may follow, and say more: a connection that ended, and then a
 * certificate that is not accepted. */
#define LOSS_NS (INT64_C(5) * PEG_NS_PER_S)

static void log_loss(struct redis_bus *bus, const peg_error *error)
{
    static const struct peg__hash_key key = {1, 2};
    const uint64_t message = peg__hash(key, peg__str(error->message));
    const int64_t now_ns = net_loop_now_ns(bus->loop);
    const bool is_same = bus->last_loss && strcmp(bus->last_loss, error->code) == 0;

    if (is_same && (bus->logged_loss == message || now_ns - bus->loss_logged_ns < LOSS_NS))
        return;
    bus->last_loss = error->code;
    bus->logged_loss = message;
    bus->loss_logged_ns = now_ns;
    peg__log(PEG_LOG_WARN, error->code, "loop %u: %s", (unsigned)bus->bus.self.loop,
             error->message);
}

static void on_lost(void *user, const peg_error *error, bool was_ready)
{
    struct redis_bus *bus = (struct redis_bus *)user;

    (void)was_ready;
    if (bus->is_dead)
        return;
    redis_bus_hold(bus);
    bus->is_ready = false;
    log_loss(bus, error);
    redis_commands_reject(&bus->group, PEG_EIO);
    redis_large_drop(bus);
    redis_drop_reads(bus);
    redis_maps_lose(bus);
    if (!bus->is_dead && (bus->queue.requests.first || bus->leases.first))
        net_loop_later(bus->loop, &bus->flush);
    redis_bus_release(bus);
}

static const struct redis_session_events session_events = {
    .on_ready = on_ready, .on_push = on_push, .on_drained = on_drained, .on_lost = on_lost};

/* ---- the table of the bus ------------------------------------------------------------------ */

static void post_to_loop(struct bus *bus, uint32_t loop, struct bus_post *post)
{
    bus_post(redis_bus_of(bus)->local, loop, post);
}

static void forget_wait(struct bus *bus, struct bus_wait *wait)
{
    struct redis_command *command = (struct redis_command *)wait->pending;

    (void)bus;
    command->wait = NULL;
    wait->pending = NULL;
}

/* The others learn of its end as far as the connection takes that; else its lease runs out. */
static void free_bus(struct bus *bus)
{
    struct redis_bus *self = redis_bus_of(bus);

    if (self->is_ready) {
        redis_send_late(self);
        redis_put_end(self);
        redis_session_send(self->session, &self->queue);
    }
    self->is_dead = true;
    self->is_ready = false;
    self->session = redis_session_free(self->session);
    redis_queue_fail(&self->queue);
    redis_queue_fail(&self->late);
    redis_queue_fail(&self->handshake_queue);
    redis_queue_free(&self->queue);
    redis_queue_free(&self->late);
    redis_queue_free(&self->handshake_queue);
    redis_commands_reject(&self->group, PEG_EIO);
    redis_commands_reject(&self->leases, PEG_EIO);
    redis_large_drop(self);
    redis_drop_reads(self);
    redis_maps_lose(self);
    redis_maps_free(self);
    redis_free_names(self);
    peg__map_free(&self->tracked);
    net_loop_disarm(self->loop, &self->check);
    net_loop_disarm(self->loop, &self->hold);
    net_loop_disarm(self->loop, &self->late_timer);
    net_loop_not_later(self->loop, &self->flush);
    net_loop_not_later(self->loop, &self->report);
    self->local = bus_free(self->local);
    redis_bus_release(self);
}

static const struct bus_ops redis_ops = {
    .now_ns = now_ns,
    .now_ms = now_ms,
    .arm = arm_timer,
    .disarm = disarm_timer,
    .epoch = current_epoch,
    .is_fenced = redis_is_fenced,
    .send = redis_send,
    .put_if_absent = redis_put_if_absent,
    .read = redis_read,
    .forget = redis_forget,
    .wait_add = redis_wait_add,
    .waiters = redis_waiters,
    .lease = redis_lease,
    .release = redis_release,
    .leases = redis_leases,
    .map_set = redis_map_set,
    .post = post_to_loop,
    .map_watch = redis_map_watch,
    .map_unwatch = redis_map_unwatch,
    .forget_wait = forget_wait,
    .free = free_bus,
};

/* ---- beginning ----------------------------------------------------------------------------- */

static struct redis_session_options session_options(struct bus_redis_hub *hub)
{
    return (struct redis_session_options){
        .url = &hub->url,
        .tls = hub->tls,
        .client_name = hub->client_name,
        .timeout_ms = hub->timeout_ms,
        .traffic = &hub->traffic,
    };
}

static void init_bus(struct redis_bus *self, struct bus_redis_hub *hub, struct net_loop *loop,
                     struct bus *local)
{
    *self = (struct redis_bus){
        .bus = {.ops = &redis_ops,
                .self = local->self,
                .origin = redis_epoch_number(peg__str(hub->prefix))},
        .hub = hub,
        .loop = loop,
        .local = local,
        .flush = {.fn = flush_round},
        .late_timer = {.fn = send_late},
        .report = {.fn = report_maps},
        .check = {.fn = check_server},
        .hold = {.fn = give_up},
        .names = PEG__MAP(PEG_LIMIT_BUS_LEASES),
        .tracked = PEG__MAP(PEG_LIMIT_GATEWAY_CALLS),
        .max_reads = PEG_LIMIT_REDIS_READS,
        .offset_ns = measure_offset_ns(loop),
        .n_holds = 1,
    };
    bus_address_print(self->bus.self, self->self_text);
    redis_hub_secret(hub, self->secret);
    redis_queue_init(&self->queue);
    redis_queue_init(&self->late);
    redis_queue_init(&self->handshake_queue);
    redis_maps_init(self);
    bus_local_set_face(local, &self->bus);
    net_loop_arm(loop, &self->check, net_loop_now_ns(loop));
}

peg_status bus_redis_new(struct bus_redis_hub *hub, struct net_loop *loop, uint32_t number,
                         struct bus **ret_bus, peg_error *reterr)
{
    const struct redis_session_options options = session_options(hub);
    struct redis_bus *self;
    struct bus *local;
    peg_status status = bus_local_new(hub->local, loop, number, &local, reterr);

    if (status)
        return status;
    self = (struct redis_bus *)peg__alloc_zero(1, sizeof(*self));
    if (!self) {
        bus_free(local);
        return peg__fail_nomem(reterr);
    }
    init_bus(self, hub, loop, local);
    status = redis_session_new(loop, &options, &session_events, self, &self->session, reterr);
    if (status) {
        bus_free(&self->bus);
        return status;
    }
    *ret_bus = &self->bus;
    return PEG_OK;
}

void bus_redis_secret(const struct bus *bus, uint8_t ret_secret[BUS_REDIS_SECRET_BYTES])
{
    const struct redis_bus *self = (const struct redis_bus *)bus;

    memcpy(ret_secret, self->secret, sizeof(self->secret));
}

bool bus_has_streams(const struct bus *bus)
{
    return bus->ops == &redis_ops;
}

bool bus_redis_is_connected(const struct bus *bus)
{
    return ((const struct redis_bus *)bus)->is_ready;
}

/* ---- what loops share ---------------------------------------------------------------------- */

static peg_status check_name(const char *name, peg_error *reterr)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/-";
    const size_t len = name ? strlen(name) : 0;

    if (len == 0 || len > PEG_LIMIT_NAME_BYTES || strspn(name, allowed) != len)
        return peg__fail(reterr, PEG_EINVAL, "E_BUS_NAME",
                         "the name of a registry has 1 to %d of the characters A-Z a-z 0-9 _ . : / "
                         "-",
                         PEG_LIMIT_NAME_BYTES);
    return PEG_OK;
}

static peg_status make_secret(struct bus_redis_hub *hub, const uint8_t *secret, peg_error *reterr)
{
    if (secret)
        memcpy(hub->secret, secret, sizeof(hub->secret));
    else if (!peg__random(hub->secret, sizeof(hub->secret)))
        return peg__fail_no_randomness(reterr);
    return PEG_OK;
}

static peg_status make_tls(struct bus_redis_hub *hub, const struct bus_redis_options *from,
                           peg_error *reterr)
{
    const struct net_tls_options options = {
        .ca_file = from->ca_file,
        .cert_file = from->cert_file,
        .key_file = from->key_file,
        .is_client = true,
    };

    if (!hub->url.is_tls && (from->ca_file || from->cert_file || from->key_file))
        return peg__fail(reterr, PEG_EINVAL, "E_TLS_CONFIG",
                         "the certificates for Redis need TLS: begin its URL with rediss://");
    if (!from->cert_file != !from->key_file)
        return peg__fail(reterr, PEG_EINVAL, "E_TLS_CONFIG",
                         "--redis-cert and --redis-key are given together or not at all");
    return hub->url.is_tls ? net_tls_config_new(&options, &hub->tls, reterr) : PEG_OK;
}

static void init_hub(struct bus_redis_hub *hub, const struct bus_redis_options *options)
{
    hub->node = options->node;
    hub->check_ms = PEG__OR_DEFAULT(options->check_ms, PEG_LIMIT_REDIS_CHECK_MS);
    hub->timeout_ms = PEG__OR_DEFAULT(options->timeout_ms, PEG_LIMIT_REDIS_TIMEOUT_MS);
    snprintf(hub->prefix, sizeof(hub->prefix), "peg:%s:", options->name);
    snprintf(hub->client_name, sizeof(hub->client_name), "pegboard-%016llx",
             (unsigned long long)options->node);
    pthread_mutex_init(&hub->lock, NULL);
}

/* Channels are those of the server: each but the first database has its own. */
static void name_channels(struct bus_redis_hub *hub)
{
    int len = snprintf(hub->channels, sizeof(hub->channels), "%s", hub->prefix);

    if (hub->url.db)
        snprintf(hub->channels + len, sizeof(hub->channels) - (size_t)len, "@%u:", hub->url.db);
}

peg_status bus_redis_hub_new(const struct bus_redis_options *options,
                             struct bus_redis_hub **ret_hub, peg_error *reterr)
{
    struct bus_redis_hub *hub;
    peg_status status = check_name(options->name, reterr);

    if (status)
        return status;
    hub = (struct bus_redis_hub *)peg__alloc_zero(1, sizeof(*hub));
    if (!hub)
        return peg__fail_nomem(reterr);
    init_hub(hub, options);
    status = redis_url_parse(options->url, options->password, &hub->url, reterr);
    name_channels(hub);
    if (!status)
        status = make_secret(hub, options->secret, reterr);
    if (!status)
        status = make_tls(hub, options, reterr);
    if (!status)
        status = bus_local_hub_new(options->node, &hub->local, reterr);
    if (!status && redis_ledger_new(&hub->ledger))
        status = peg__fail_nomem(reterr);
    if (status) {
        bus_redis_hub_free(hub);
        return status;
    }
    *ret_hub = hub;
    return PEG_OK;
}

peg_status bus_redis_hub_reload(struct bus_redis_hub *hub, peg_error *reterr)
{
    return hub->tls ? net_tls_config_reload(hub->tls, reterr) : PEG_OK;
}

struct bus_redis_hub *bus_redis_hub_free(struct bus_redis_hub *hub)
{
    if (!hub)
        return NULL;
    bus_local_hub_free(hub->local);
    redis_ledger_free(hub->ledger);
    net_tls_config_unref(hub->tls);
    pthread_mutex_destroy(&hub->lock);
    peg__free(hub);
    return NULL;
}

/* ---- a first look -------------------------------------------------------------------------- */

struct first_look {
    struct bus_redis_hub *hub;
    struct net_loop *loop;
    struct redis_session *session;
    struct redis_queue queue;
    struct redis_request request;
    peg_status status;
    peg_error error;
};

static void end_look(struct first_look *look, peg_status status, const peg_error *error)
{
    look->status = status;
    if (error)
        look->error = *error;
    net_loop_stop(look->loop);
}

static void on_secret_looked(struct redis_request *request, const struct resp_value *reply)
{
    struct first_look *look = peg__container_of(request, struct first_look, request);
    uint8_t secret[BUS_REDIS_SECRET_BYTES];
    peg_error error;

    if (!reply)
        return; /* on_lost() says why */
    if (reply->kind == RESP_ERROR) {
        redis_fail_reply(&error, reply);
        end_look(look, error.status, &error);
        return;
    }
    redis_hub_secret(look->hub, secret);
    if (reply->kind == RESP_TEXT)
        redis_read_secret(look->hub, reply->text, secret);
    redis_hub_set_secret(look->hub, secret);
    end_look(look, PEG_OK, NULL);
}

static void on_look_ready(void *user)
{
    struct first_look *look = (struct first_look *)user;
    uint8_t secret[BUS_REDIS_SECRET_BYTES];
    peg_error error;

    redis_hub_secret(look->hub, secret);
    redis_put_secret(look->hub, &look->queue.out, secret);
    if (redis_queue_add(&look->queue, 0, &look->request)) {
        peg__fail_nomem(&error);
        end_look(look, PEG_ENOMEM, &error);
        return;
    }
    redis_session_send(look->session, &look->queue);
}

static void on_look_push(void *user, const struct resp_value *push)
{
    (void)user;
    (void)push;
}

static void on_look_drained(void *user)
{
    (void)user;
}

static void on_look_lost(void *user, const peg_error *error, bool was_ready)
{
    (void)was_ready;
    end_look((struct first_look *)user, error->status, error);
}

peg_status bus_redis_hub_check(struct bus_redis_hub *hub, peg_error *reterr)
{
    static const struct redis_session_events events = {.on_ready = on_look_ready,
                                                       .on_push = on_look_push,
                                                       .on_drained = on_look_drained,
                                                       .on_lost = on_look_lost};
    const struct redis_session_options options = session_options(hub);
    struct first_look look = {.hub = hub, .request = {.fn = on_secret_looked}};
    peg_status status = net_loop_new(&look.loop, reterr);

    if (status)
        return status;
    redis_queue_init(&look.queue);
    status = redis_session_new(look.loop, &options, &events, &look, &look.session, reterr);
    if (!status) {
        net_loop_run(look.loop);
        redis_session_free(look.session);
        status = look.status;
        if (status && reterr)
            *reterr = look.error;
    }
    redis_queue_free(&look.queue);
    net_loop_free(look.loop);
    return status;
}
