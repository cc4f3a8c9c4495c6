/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A raw round trip through streams of a Redis: what a call through a cluster is compared with.
 *
 *   cluster-stream peer --redis URL
 *   cluster-stream load --redis URL [--pid PID]... [--streams N] [--seconds S] [--warm S]
 *                       [--size BYTES] [--gathered]
 *
 * The load adds an entry to the stream `raw:requests` (XADD), for which the peer waits (XREAD
 * BLOCK); the peer adds an entry with the same bytes to `raw:results:<n>`, for which the load
 * waits. Closed loop: `streams` entries are always under way, each as by a client of its own: it
 * has a number, a connection, and a stream of its results. With --gathered they are all one
 * client's: one stream of results, of which all that is there is read at once, and what is added in
 * one round of the loop goes out in one write, as on the bus. The peer always gathers. Connections
 * are those that the bus has.
 * Prints one JSON object, as grpc-load does; the peer says "ready".
 */

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../grpc/load.h"
#include "../help.h"
#include "base/text/str.h"
#include "bus/redis/session.h"

enum { MAX_PIDS = 16, MAX_SLOTS = 1024, ID_TEXT = 64, KEY_TEXT = 32 };
enum { TIMEOUT_MS = 60000, N_KEPT = 1000 };

struct options {
    bool is_peer;
    bool is_gathered;
    const char *redis;
    pid_t pids[MAX_PIDS];
    unsigned n_pids;
    unsigned n_slots;
    double seconds;
    double warm_seconds;
    size_t size;
};

enum phase { WARMING, MEASURING, ENDED };

struct side;

/* One that reads a stream and adds to others. */
struct client {
    struct side *side;
    unsigned number;
    char from[KEY_TEXT];
    char last_id[ID_TEXT];
    struct redis_session *reader; /* whose connection XREAD blocks */
    struct redis_session *writer; /* the same, unless it gathers */
    unsigned n_ready;
    struct redis_queue read_queue;
    struct redis_queue write_queue;
    struct redis_request read;
    struct redis_request clear;
    struct net_later flush;
};

struct side {
    struct options options;
    struct net_loop *loop;
    struct redis_url url;
    struct client *clients;
    unsigned n_clients;
    unsigned n_started;
    struct net_timer timer;
    peg_str payload;
    int64_t sent_ns[MAX_SLOTS];
    enum phase phase;
    uint64_t n_calls;
    int64_t began_ns;
    int64_t cpu_ns[MAX_PIDS];
    int64_t own_ns;
    struct histogram latencies;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "cluster-stream: %s: %s\n", what, why);
    exit(1);
}

static void *allocate(size_t n, size_t size)
{
    void *memory = calloc(n, size);

    if (!memory)
        fail("memory", "there is none left");
    return memory;
}

static bool is_gathering(const struct side *side)
{
    return side->options.is_peer || side->options.is_gathered;
}

/* ---- adding -------------------------------------------------------------------------------- */

static void on_added(struct redis_request *request, const struct resp_value *reply)
{
    if (!reply || reply->kind != RESP_TEXT)
        fail("XADD", reply ? "refused" : "no reply");
    free(request);
}

static void flush_entries(struct net_later *later)
{
    struct client *client = (struct client *)((char *)later - offsetof(struct client, flush));

    redis_session_send(client->writer, &client->write_queue);
}

/* `from`: "<number of the stream of results>.<slot>". */
static void add_entry(struct client *client, const char *to, peg_str from, peg_str payload)
{
    struct redis_request *request = allocate(1, sizeof(*request));
    const size_t mark = redis_queue_mark(&client->write_queue);
    struct peg__buf *out = &client->write_queue.out;

    request->fn = on_added;
    resp_put_command(out, 8);
    resp_puts(out, "XADD");
    resp_puts(out, to);
    resp_puts(out, "MAXLEN");
    resp_puts(out, "~");
    resp_put_number(out, N_KEPT);
    resp_puts(out, "*");
    resp_put(out, from);
    resp_put(out, payload);
    if (redis_queue_add(&client->write_queue, mark, request))
        fail("XADD", "the queue is full");
    net_loop_later(client->side->loop, &client->flush);
}

static void start_call(struct client *client, unsigned slot)
{
    char text[KEY_TEXT];

    snprintf(text, sizeof(text), "%u.%u", client->number, slot);
    client->side->sent_ns[slot] = now_ns();
    add_entry(client, "raw:requests", peg__str(text), client->side->payload);
}

/* ---- reading ------------------------------------------------------------------------------- */

static void wait_for_entries(struct client *client)
{
    struct redis_queue *queue =
        is_gathering(client->side) ? &client->read_queue : &client->write_queue;
    const size_t mark = redis_queue_mark(queue);

    resp_put_command(&queue->out, 8);
    resp_puts(&queue->out, "XREAD");
    resp_puts(&queue->out, "COUNT");
    resp_put_number(&queue->out, N_KEPT);
    resp_puts(&queue->out, "BLOCK");
    resp_puts(&queue->out, "1000");
    resp_puts(&queue->out, "STREAMS");
    resp_puts(&queue->out, client->from);
    resp_puts(&queue->out, client->last_id);
    if (redis_queue_add(queue, mark, &client->read))
        fail("XREAD", "the queue is full");
    if (is_gathering(client->side))
        redis_session_send(client->reader, queue);
    else
        net_loop_later(client->side->loop, &client->flush);
}

static void answer_entry(struct client *client, peg_str from, peg_str payload)
{
    char to[KEY_TEXT];

    snprintf(to, sizeof(to), "raw:results:%u", (unsigned)strtoul(from.ptr, NULL, 10));
    add_entry(client, to, from, payload);
}

static void take_answer(struct client *client, peg_str from, peg_str payload)
{
    struct side *side = client->side;
    const char *dot = memchr(from.ptr, '.', from.len);
    const unsigned slot = dot ? (unsigned)strtoul(dot + 1, NULL, 10) : MAX_SLOTS;

    if (slot >= side->options.n_slots || !peg__str_eq(payload, side->payload))
        fail("an answer", "it is not what was sent");
    if (side->phase == MEASURING) {
        side->n_calls++;
        histogram_add(&side->latencies, now_ns() - side->sent_ns[slot]);
    }
    if (side->phase != ENDED)
        start_call(client, slot);
}

/* [id, [from, payload]] */
static void take_entry(struct client *client, const struct resp_value *entry)
{
    const struct resp_value *id = resp_item(entry, 0);
    const struct resp_value *fields = resp_item(entry, 1);
    const struct resp_value *from = resp_item(fields, 0);
    const struct resp_value *payload = resp_item(fields, 1);

    if (!id || !from || !payload || id->text.len >= sizeof(client->last_id))
        fail("XREAD", "the reply is malformed");
    snprintf(client->last_id, sizeof(client->last_id), PEG_FMT, PEG_ARG(id->text));
    if (client->side->options.is_peer)
        answer_entry(client, from->text, payload->text);
    else
        take_answer(client, from->text, payload->text);
}

/* {stream: [entry...]} */
static void on_read(struct redis_request *request, const struct resp_value *reply)
{
    struct client *client = (struct client *)((char *)request - offsetof(struct client, read));

    if (!reply || reply->kind == RESP_ERROR)
        fail("XREAD", reply ? "refused" : "the connection is lost");
    if (reply->kind == RESP_MAP) {
        const struct resp_value *entries = reply + 2;
        const struct resp_value *entry = entries + 1;

        for (unsigned i = 0; i < entries->n_items; i++, entry = resp_next(entry))
            take_entry(client, entry);
    }
    if (client->side->phase != ENDED)
        wait_for_entries(client);
}

/* ---- the measurement ----------------------------------------------------------------------- */

static void read_clocks(struct side *side)
{
    for (unsigned i = 0; i < side->options.n_pids; i++)
        side->cpu_ns[i] = process_cpu_ns(side->options.pids[i]) - side->cpu_ns[i];
    side->own_ns = own_cpu_ns() - side->own_ns;
    side->began_ns = now_ns() - side->began_ns;
}

static void tick(struct net_timer *timer)
{
    struct side *side = (struct side *)((char *)timer - offsetof(struct side, timer));

    read_clocks(side);
    if (side->phase == WARMING) {
        side->phase = MEASURING;
        net_loop_arm(side->loop, timer, now_ns() + (int64_t)(side->options.seconds * 1e9));
        return;
    }
    side->phase = ENDED;
    net_loop_stop(side->loop);
}

static void report(const struct side *side)
{
    printf("{\"kind\":\"raw\",\"streams\":%u,\"size\":%zu,\"seconds\":%.6f,\"calls\":%llu,"
           "\"client_cpu_s\":%.6f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"cpu_s\":[",
           side->options.n_slots, side->options.size, (double)side->began_ns / 1e9,
           (unsigned long long)side->n_calls, (double)side->own_ns / 1e9,
           histogram_quantile_us(&side->latencies, 0.5),
           histogram_quantile_us(&side->latencies, 0.99));
    for (unsigned i = 0; i < side->options.n_pids; i++)
        printf("%s%.6f", i ? "," : "", (double)side->cpu_ns[i] / 1e9);
    printf("]}\n");
}

/* ---- beginning ----------------------------------------------------------------------------- */

static void start_client(struct client *client)
{
    const unsigned n_each = client->side->options.is_gathered ? client->side->options.n_slots : 1;

    for (unsigned i = 0; i < n_each; i++)
        start_call(client, client->number + i);
    wait_for_entries(client); /* last: it blocks what comes behind it on the connection */
}

static void on_cleared(struct redis_request *request, const struct resp_value *reply)
{
    struct client *client = (struct client *)((char *)request - offsetof(struct client, clear));
    struct side *side = client->side;

    if (!reply || reply->kind == RESP_ERROR)
        fail("DEL", "refused");
    if (++side->n_started < side->n_clients)
        return;
    if (side->options.is_peer) {
        wait_for_entries(client);
        printf("ready\n");
        fflush(stdout);
        return;
    }
    for (unsigned i = 0; i < side->n_clients; i++)
        start_client(&side->clients[i]);
    net_loop_arm(side->loop, &side->timer, now_ns() + (int64_t)(side->options.warm_seconds * 1e9));
}

/* Its connections are there: what an earlier run left goes first. */
static void on_ready(void *user)
{
    struct client *client = user;

    if (++client->n_ready < (is_gathering(client->side) ? 2 : 1))
        return;
    resp_put_command(&client->write_queue.out, 2);
    resp_puts(&client->write_queue.out, "DEL");
    resp_puts(&client->write_queue.out, client->from);
    if (redis_queue_add(&client->write_queue, 0, &client->clear))
        fail("DEL", "the queue is full");
    net_loop_later(client->side->loop, &client->flush);
}

static void on_push(void *user, const struct resp_value *push)
{
    (void)user;
    (void)push;
}

static void on_drained(void *user)
{
    struct client *client = user;

    net_loop_later(client->side->loop, &client->flush);
}

static void on_lost(void *user, const peg_error *error, bool was_ready)
{
    (void)user;
    (void)was_ready;
    fail("Redis", error->message);
}

static void connect_client(struct side *side, unsigned number)
{
    static const struct redis_session_events events = {
        .on_ready = on_ready, .on_push = on_push, .on_drained = on_drained, .on_lost = on_lost};
    const struct redis_session_options options = {
        .url = &side->url, .client_name = "bench", .timeout_ms = TIMEOUT_MS};
    struct client *client = &side->clients[number];
    peg_error error;

    *client = (struct client){.side = side,
                              .number = number,
                              .last_id = "0-0",
                              .read = {.fn = on_read},
                              .clear = {.fn = on_cleared},
                              .flush = {.fn = flush_entries}};
    if (side->options.is_peer)
        snprintf(client->from, sizeof(client->from), "raw:requests");
    else
        snprintf(client->from, sizeof(client->from), "raw:results:%u", number);
    redis_queue_init(&client->read_queue);
    redis_queue_init(&client->write_queue);
    if (redis_session_new(side->loop, &options, &events, client, &client->writer, &error))
        fail("Redis", error.message);
    client->reader = client->writer;
    if (is_gathering(side) &&
        redis_session_new(side->loop, &options, &events, client, &client->reader, &error))
        fail("Redis", error.message);
}

static void start_side(struct side *side)
{
    char *payload = allocate(1, side->options.size + 1);
    peg_error error;

    memset(payload, 'x', side->options.size);
    side->payload = (peg_str){payload, side->options.size};
    side->timer.fn = tick;
    if (redis_url_parse(side->options.redis, NULL, &side->url, &error) ||
        net_loop_new(&side->loop, &error))
        fail("Redis", error.message);
    side->n_clients = is_gathering(side) ? 1 : side->options.n_slots;
    side->clients = allocate(side->n_clients, sizeof(struct client));
    for (unsigned i = 0; i < side->n_clients; i++)
        connect_client(side, i);
}

static const char help[] =
    "usage: cluster-stream peer --redis URL\n"
    "       cluster-stream load --redis URL [options]\n\n"
    "Measures round trips through streams of a Redis, between this process and a peer, and\n"
    "prints what came of it as one JSON object.\n\n"
    "  --redis URL   as for pegboard serve\n"
    "  --pid PID     a process whose CPU time is read; may be repeated\n"
    "  --streams N   entries under way at once, each of a client of its own [1]\n"
    "  --gathered    all of them of one client, which reads and writes many at once\n"
    "  --seconds S   of the measurement [2]\n"
    "  --warm S      before it [0.5]\n"
    "  --size BYTES  of an entry [500]\n";

static void set_option(struct options *options, int c, const char *value)
{
    switch (c) {
    case 'r':
        options->redis = value;
        break;
    case 'g':
        options->is_gathered = true;
        break;
    case 'p':
        if (options->n_pids == MAX_PIDS)
            fail("--pid", "there are too many");
        options->pids[options->n_pids++] = (pid_t)strtol(value, NULL, 10);
        break;
    case 'm':
        options->n_slots = (unsigned)strtoul(value, NULL, 10);
        break;
    case 's':
        options->seconds = strtod(value, NULL);
        break;
    case 'w':
        options->warm_seconds = strtod(value, NULL);
        break;
    case 'b':
        options->size = strtoul(value, NULL, 10);
        break;
    default:
        exit(2);
    }
}

static struct options parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"redis", required_argument, NULL, 'r'},   {"pid", required_argument, NULL, 'p'},
        {"streams", required_argument, NULL, 'm'}, {"seconds", required_argument, NULL, 's'},
        {"warm", required_argument, NULL, 'w'},    {"size", required_argument, NULL, 'b'},
        {"gathered", no_argument, NULL, 'g'},      {NULL, 0, NULL, 0},
    };
    struct options options = {.n_slots = 1, .seconds = 2, .warm_seconds = 0.5, .size = 500};

    bench_help(argc, argv, help);
    for (int c = 0; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
        set_option(&options, c, optarg);
    if (optind + 1 != argc || !options.redis)
        fail("options", "`peer` or `load`, and --redis");
    options.is_peer = strcmp(argv[optind], "peer") == 0;
    if (options.n_slots < 1 || options.n_slots > MAX_SLOTS)
        fail("--streams", "1 to 1024");
    return options;
}

int main(int argc, char **argv)
{
    static struct side side;

    side.options = parse_options(argc, argv);
    start_side(&side);
    net_loop_run(side.loop);
    report(&side);
    return 0; /* what is under way is of no use to anybody */
}
