/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loads an echo server with our client and says what came of it, as one JSON object.
 *
 *   grpc-load --target 127.0.0.1:PORT --pid PID... [--kind echo|chat|stream|call|keyed]
 *             [--conns N] [--streams N] [--seconds S] [--warm S] [--size BYTES] [--ca PEM]
 * [--sleeps]
 *
 * Closed loop: `conns` connections, `streams` calls at once on each, each followed by the next one
 * as soon as it is answered. `echo` is unary; `chat` keeps one call open for each and sends the
 * next message when the last one is back; `stream` asks for N_ANSWERS messages and takes them;
 * `call` is CallTool of a gateway, to the tool `echo` of the toolset `bench`; `keyed` is the same
 * with an idempotency key of its own for each call.
 * Every answer is compared with what was sent. Whatever goes wrong ends the program: a server
 * that fails has no figures.
 *
 * One thread, which never sleeps unless it is told to: a server whose every answer has to wake its
 * client pays for that (some 5 us on a virtual machine), and pays the more, the faster it is.
 *
 * The server's CPU is read from the clock of its process (that of the first --pid; `cpu_s` has all
 * of them) when the measurement begins, which is when the warm-up is over and every call has been
 * answered once, and when it ends.
 */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../help.h"
#include "base/text/str.h"
#include "grpc/client/client.h"
#include "load.h"
#include "wire/pack.h"

enum { RESULT_FIELD = 2 }; /* of pegboard.v1.CallToolResponse */
enum { KEY_FIELD = 5 };    /* of pegboard.v1.CallToolRequest: idempotency_key */
enum { N_ANSWERS = 1000, MAX_SIZE = 1 << 20, START_NS = 100000000, MAX_STARTS = 200 };
enum { MAX_PIDS = 16 };

enum { KEY_LEN = 32 }; /* of an idempotency key: a prefix of this run and a number, in hex */

enum kind { ECHO, CHAT, STREAM, CALL, KEYED, N_KINDS };
enum phase { WARMING, MEASURING, ENDING };

struct options {
    const char *target;
    enum kind kind;
    pid_t pids[MAX_PIDS];
    unsigned n_pids;
    unsigned n_conns;
    unsigned n_streams;
    double seconds;
    double warm_seconds;
    size_t size;
    const char *ca;
    bool sleeps; /* between answers, as a client that has nothing to do */
};

struct load;

/* One of the calls at once. */
struct slot {
    struct load *load;
    struct grpc_channel *channel;
    struct grpc_rpc *rpc; /* NULL: between two calls */
    int64_t sent_ns;
    unsigned n_got; /* messages of this call */
    bool was_answered;
};

struct load {
    struct options options;
    enum phase phase;
    struct net_loop *loop;
    struct net_timer timer;
    struct net_later awake;
    struct grpc_channel **channels;
    struct slot *slots;
    size_t n_slots;
    size_t n_running;
    unsigned n_starts; /* how often the warm-up was too short */
    peg_str message;
    peg_str expected; /* of each answer; CALL and KEYED: in its field `result` */
    char *key;        /* KEYED: inside of `message`; another for each call */
    uint64_t n_keys;
    /* of the measurement */
    uint64_t n_calls;
    uint64_t n_messages;
    int64_t began_ns;
    int64_t cpu_ns[MAX_PIDS];
    int64_t client_ns;
    struct histogram latencies;
};

static const char *const kind_names[N_KINDS] = {"echo", "chat", "stream", "call", "keyed"};

static const struct grpc_method methods[N_KINDS] = {
    {.name = "Echo", .path = "/pegboard.test.Echo/Echo"},
    {.name = "Chat",
     .path = "/pegboard.test.Echo/Chat",
     .client_streams = true,
     .server_streams = true},
    {.name = "Stream", .path = "/pegboard.test.Echo/Stream", .server_streams = true},
    {.name = "CallTool", .path = "/pegboard.v1.Registry/CallTool"},
    {.name = "CallTool", .path = "/pegboard.v1.Registry/CallTool"},
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "grpc-load: %s: %s\n", what, why);
    exit(1);
}

static void must(peg_status status, const peg_error *error, const char *what)
{
    if (status)
        fail(what, error->message);
}

static bool is_tool_call(enum kind kind)
{
    return kind == CALL || kind == KEYED;
}

static bool is_unary(enum kind kind)
{
    return kind == ECHO || is_tool_call(kind);
}

/* ---- calls ------------------------------------------------------------------------- */

static void start_call(struct slot *slot);

static void count_answer(struct slot *slot)
{
    struct load *load = slot->load;

    slot->was_answered = true;
    if (load->phase != MEASURING)
        return;
    load->n_messages++;
    if (load->options.kind != STREAM)
        histogram_add(&load->latencies, now_ns() - slot->sent_ns);
}

static void send_next(struct slot *slot)
{
    peg_error error;

    if (slot->load->phase == ENDING) {
        grpc_rpc_half_close(slot->rpc);
        return;
    }
    slot->sent_ns = now_ns();
    must(grpc_rpc_send(slot->rpc, slot->load->message, &error), &error, "a message");
}

static void take_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    struct slot *slot = user;
    const enum kind kind = slot->load->options.kind;
    const peg_str got = is_tool_call(kind)
                            ? wire_find_bytes(*(const peg_str *)message, RESULT_FIELD)
                            : *(const peg_str *)message;

    (void)rpc;
    if (!peg__str_eq(got, slot->load->expected))
        fail("an answer", "it is not what was sent");
    slot->n_got++;
    if (is_unary(kind))
        return; /* it counts when the status is there */
    count_answer(slot);
    if (kind == CHAT)
        send_next(slot);
}

static void check_end(const struct slot *slot, const struct grpc_status *status)
{
    static const unsigned n_expected[N_KINDS] = {
        [ECHO] = 1, [STREAM] = N_ANSWERS, [CALL] = 1, [KEYED] = 1};
    enum kind kind = slot->load->options.kind;
    char why[300];

    if (status->code != GRPC_OK) {
        snprintf(why, sizeof why, "%s %.*s", grpc_code_name(status->code),
                 status->message.len < 200 ? (int)status->message.len : 200, status->message.ptr);
        fail("a call", why);
    }
    if (kind == CHAT && slot->load->phase != ENDING)
        fail("a chat", "the server ended it");
    if (kind != CHAT && slot->n_got != n_expected[kind])
        fail("a call", "it has not as many answers as it should");
}

static void end_call(struct grpc_rpc *rpc, const struct grpc_status *status,
                     const struct grpc_metadata *trailers, void *user)
{
    struct slot *slot = user;
    struct load *load = slot->load;

    (void)rpc;
    (void)trailers;
    check_end(slot, status);
    slot->rpc = NULL;
    if (is_unary(load->options.kind))
        count_answer(slot);
    if (load->phase == MEASURING)
        load->n_calls++;
    if (load->phase != ENDING) {
        start_call(slot);
        return;
    }
    load->n_running--;
    if (load->n_running == 0)
        net_loop_stop(load->loop);
}

static const struct grpc_rpc_events events = {.on_message = take_message, .on_end = end_call};
static const struct grpc_rpc_options rpc_options = {.waits_for_ready = true};

/* Writes the next key into the message, in place: a message is encoded when its call starts. */
static void change_key(struct load *load)
{
    char digits[KEY_LEN / 2 + 1];

    snprintf(digits, sizeof(digits), "%016llx", (unsigned long long)load->n_keys++);
    memcpy(load->key + KEY_LEN / 2, digits, KEY_LEN / 2);
}

static void start_call(struct slot *slot)
{
    struct load *load = slot->load;
    const struct grpc_method *method = &methods[load->options.kind];
    peg_error error;

    slot->n_got = 0;
    if (load->key)
        change_key(load);
    slot->sent_ns = now_ns();
    if (is_unary(load->options.kind)) {
        must(grpc_rpc_unary(slot->channel, method, &load->message, &rpc_options, &events, slot,
                            &slot->rpc, &error),
             &error, "a call");
        return;
    }
    must(grpc_rpc_start(slot->channel, method, &rpc_options, &events, slot, &slot->rpc, &error),
         &error, "a call");
    must(grpc_rpc_send(slot->rpc, load->message, &error), &error, "a message");
    if (load->options.kind == STREAM)
        grpc_rpc_half_close(slot->rpc);
}

/* ---- the measurement ---------------------------------------------------------------- */

static bool all_were_answered(const struct load *load)
{
    for (size_t i = 0; i < load->n_slots; i++)
        if (!load->slots[i].was_answered)
            return false;
    return true;
}

static void arm(struct load *load, int64_t ns)
{
    net_loop_arm(load->loop, &load->timer, now_ns() + ns);
}

static void read_clocks(struct load *load)
{
    for (unsigned i = 0; i < load->options.n_pids; i++)
        load->cpu_ns[i] = process_cpu_ns(load->options.pids[i]) - load->cpu_ns[i];
    load->client_ns = own_cpu_ns() - load->client_ns;
    load->began_ns = now_ns() - load->began_ns;
}

static void begin(struct load *load)
{
    if (!all_were_answered(load)) {
        if (++load->n_starts > MAX_STARTS)
            fail("the warm-up", "some calls are not answered");
        arm(load, START_NS);
        return;
    }
    load->phase = MEASURING;
    read_clocks(load);
    arm(load, (int64_t)(load->options.seconds * 1e9));
}

static void end(struct load *load)
{
    read_clocks(load);
    load->phase = ENDING;
}

static void tick(struct net_timer *timer)
{
    struct load *load = (struct load *)((char *)timer - offsetof(struct load, timer));

    if (load->phase == WARMING)
        begin(load);
    else
        end(load);
}

static void report(const struct load *load)
{
    const struct options *o = &load->options;

    printf("{\"kind\":\"%s\",\"conns\":%u,\"streams\":%u,\"size\":%zu,\"tls\":%s,"
           "\"seconds\":%.6f,\"calls\":%llu,\"messages\":%llu,\"server_cpu_s\":%.6f,"
           "\"client_cpu_s\":%.6f",
           kind_names[o->kind], o->n_conns, o->n_streams, o->size, o->ca ? "true" : "false",
           (double)load->began_ns / 1e9, (unsigned long long)load->n_calls,
           (unsigned long long)load->n_messages, (double)load->cpu_ns[0] / 1e9,
           (double)load->client_ns / 1e9);
    if (load->latencies.n > 0)
        printf(",\"p50_us\":%.1f,\"p99_us\":%.1f", histogram_quantile_us(&load->latencies, 0.5),
               histogram_quantile_us(&load->latencies, 0.99));
    printf(",\"cpu_s\":[");
    for (unsigned i = 0; i < o->n_pids; i++)
        printf("%s%.6f", i ? "," : "", (double)load->cpu_ns[i] / 1e9);
    printf("]}\n");
}

/* ---- the program -------------------------------------------------------------------- */

static enum kind parse_kind(const char *name)
{
    for (int kind = 0; kind < N_KINDS; kind++)
        if (strcmp(name, kind_names[kind]) == 0)
            return (enum kind)kind;
    fail("--kind", "echo, chat, stream, call and keyed are known");
    return ECHO;
}

static void set_option(struct options *options, int c, const char *value)
{
    switch (c) {
    case 'z':
        options->sleeps = true;
        break;
    case 't':
        options->target = value;
        break;
    case 'k':
        options->kind = parse_kind(value);
        break;
    case 'p':
        if (options->n_pids == MAX_PIDS)
            fail("--pid", "there are too many");
        options->pids[options->n_pids++] = (pid_t)strtol(value, NULL, 10);
        break;
    case 'c':
        options->n_conns = (unsigned)strtoul(value, NULL, 10);
        break;
    case 'm':
        options->n_streams = (unsigned)strtoul(value, NULL, 10);
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
    case 'a':
        options->ca = value;
        break;
    default:
        exit(2);
    }
}

static const char help[] =
    "usage: grpc-load --target ADDRESS --pid PID [options]\n\n"
    "Loads a server with calls, each followed by the next one when it is answered, and\n"
    "prints what came of it as one JSON object.\n\n"
    "  --target ADDRESS  the server\n"
    "  --pid PID         its process, whose CPU time is read; more may follow\n"
    "  --kind KIND       echo, chat, stream, call (CallTool of a gateway), or\n"
    "                    keyed (CallTool with an idempotency key) [echo]\n"
    "  --conns N         connections [1]\n"
    "  --streams N       calls at once on each [1]\n"
    "  --seconds S       of the measurement [2]\n"
    "  --warm S          before it [0.5]\n"
    "  --size BYTES      of a message [500]\n"
    "  --ca PEM          TLS, with a server that this certificate vouches for\n"
    "  --sleeps          wait for events instead of looking for them all the time\n";

static struct options parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"target", required_argument, NULL, 't'},
        {"kind", required_argument, NULL, 'k'},
        {"pid", required_argument, NULL, 'p'},
        {"conns", required_argument, NULL, 'c'},
        {"streams", required_argument, NULL, 'm'},
        {"seconds", required_argument, NULL, 's'},
        {"warm", required_argument, NULL, 'w'},
        {"size", required_argument, NULL, 'b'},
        {"ca", required_argument, NULL, 'a'},
        {"sleeps", no_argument, NULL, 'z'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {
        .n_conns = 1, .n_streams = 1, .seconds = 2, .warm_seconds = 0.5, .size = 500};

    bench_help(argc, argv, help);
    for (int c = 0; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
        set_option(&options, c, optarg);
    if (!options.target || !options.n_pids || options.n_conns == 0 || options.n_streams == 0)
        fail("options", "--target and --pid are needed, --conns and --streams are above 0");
    if (options.size < 1 || options.size > MAX_SIZE)
        fail("--size", "1 to 1048576 bytes");
    return options;
}

static void *allocate(size_t n, size_t size)
{
    void *memory = calloc(n, size);

    if (!memory)
        fail("memory", "there is none left");
    return memory;
}

/* `bytes payload = 1;` with so many bytes. */
static peg_str make_message(size_t size)
{
    char *bytes = allocate(1, size + 16);
    size_t len = 0;
    size_t rest = size;

    bytes[len++] = 0x0a;
    for (; rest >= 0x80; rest >>= 7)
        bytes[len++] = (char)(0x80 | (rest & 0x7f));
    bytes[len++] = (char)rest;
    for (size_t i = 0; i < size; i++)
        bytes[len++] = (char)('a' + i % 26);
    return (peg_str){bytes, len};
}

/* A pegboard.v1.CallToolRequest whose payload is a JSON object of so many bytes; the tool answers
 * with the same. */
static peg_str make_request(size_t size, peg_str *ret_payload)
{
    static const char head[] = "{\"text\":\"";
    char *payload = allocate(1, size + sizeof(head) + 2);
    char *bytes = allocate(1, size + 128);
    size_t len = sizeof(head) - 1;
    char *at;

    memcpy(payload, head, len);
    for (; len + 2 < size; len++)
        payload[len] = (char)('a' + len % 26);
    payload[len++] = '"';
    payload[len++] = '}';
    *ret_payload = (peg_str){payload, len};
    at = wire_put_bytes(bytes, 1, peg_cstr("bench"));
    at = wire_put_bytes(at, 2, peg_cstr("echo"));
    at = wire_put_bytes(at, 3, *ret_payload);
    return (peg_str){bytes, (size_t)(at - bytes)};
}

/* Adds an idempotency key that differs between runs, to be changed for each call. */
static void add_key(struct load *load)
{
    char key[KEY_LEN + 1];
    char *end = (char *)load->message.ptr + load->message.len;

    snprintf(key, sizeof(key), "%016llx%016d", (unsigned long long)now_ns(), 0);
    end = wire_put_bytes(end, KEY_FIELD, (peg_str){key, KEY_LEN});
    load->message.len = (size_t)(end - load->message.ptr);
    load->key = end - KEY_LEN;
}

static void make_channels(struct load *load)
{
    const struct options *o = &load->options;
    struct net_tls_options trust = {.ca_file = o->ca, .is_client = true};
    struct grpc_channel_options options = {0};
    peg_error error;

    if (o->ca)
        must(net_tls_config_new(&trust, &options.tls, &error), &error, "--ca");
    load->channels = allocate(o->n_conns, sizeof(struct grpc_channel *));
    for (unsigned i = 0; i < o->n_conns; i++)
        must(
            grpc_channel_new(load->loop, peg_cstr(o->target), &options, &load->channels[i], &error),
            &error, "--target");
    net_tls_config_unref(options.tls);
}

static void start_calls(struct load *load)
{
    load->n_slots = (size_t)load->options.n_conns * load->options.n_streams;
    load->slots = allocate(load->n_slots, sizeof(struct slot));
    for (size_t i = 0; i < load->n_slots; i++) {
        load->slots[i] =
            (struct slot){.load = load, .channel = load->channels[i % load->options.n_conns]};
        start_call(&load->slots[i]);
        load->n_running++;
    }
    load->timer.fn = tick;
    arm(load, (int64_t)(load->options.warm_seconds * 1e9));
}

/* Somebody waits for the next round, so the loop does not. */
static void stay_awake(struct net_later *awake)
{
    struct load *load = (struct load *)((char *)awake - offsetof(struct load, awake));

    net_loop_later(load->loop, awake);
}

int main(int argc, char **argv)
{
    static struct load load;
    peg_error error;

    load.options = parse_options(argc, argv);
    if (is_tool_call(load.options.kind)) {
        load.message = make_request(load.options.size, &load.expected);
        if (load.options.kind == KEYED)
            add_key(&load);
    } else {
        load.message = make_message(load.options.size);
        load.expected = load.message;
    }
    must(net_loop_new(&load.loop, &error), &error, "a loop");
    make_channels(&load);
    start_calls(&load);
    load.awake.fn = stay_awake;
    if (!load.options.sleeps)
        net_loop_later(load.loop, &load.awake);
    net_loop_run(load.loop);
    net_loop_not_later(load.loop, &load.awake);
    report(&load);
    for (unsigned i = 0; i < load.options.n_conns; i++)
        grpc_channel_free(load.channels[i]);
    net_loop_free(load.loop);
    free(load.channels);
    free(load.slots);
    return 0;
}
