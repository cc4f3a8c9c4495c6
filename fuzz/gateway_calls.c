/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: what providers and callers of a gateway do, in steps of a message, a number in one byte,
 * and for some of them a text behind its length in two bytes, the low one first:
 *
 *   a  a frame (text) on Attach stream number n, which is opened if it is not open
 *   e  Attach stream n says nothing more
 *   x  Attach stream n is canceled; if n is odd it breaks
 *   c  a request (text: the method's path in a line of its own, then the message)
 *   d  request n is canceled; if the number of those so far is odd it breaks
 *   t  time passes
 *
 * In small messages some milliseconds pass afterwards, in which messages arrive; in capitals none.
 * In messages a call_id or route of one digit stands for those of that call which the gateway
 * named.
 *
 * All of it goes through the services to a real loop on a simulated bus, with a clock of its own;
 * only the catalog, which has threads, is played. Every answer can be read and is in order, what is
 * handed to providers and callers is JSON, every request is answered in time, and afterwards the
 * loop and the bus hold nothing any more.
 */

#include <ctype.h>

#include "../tests/bus/sim/sim.h"
#include "calls/provider/provider_side.h"
#include "gateway/catalog/catalog.h"
#include "gateway/rpc/rpc.h"
#include "gateway/search/search.h"
#include "linked.h"
#include "methods.h"

enum {
    N_ATTACHED = 4,
    N_NAMED = 10,
    N_TOOLSETS = 4,
    MAX_MS = 60000, /* of a call: longer ones only take longer */
    KEEP_MS = 10000,
};

static struct {
    struct bus_sim *sim;
    struct bus *bus;
    struct gw_presence *presence;
    struct gw_router router;
    struct calls_loop *calls; /* the router's */
    struct gw_node node;
    struct gw_toolset *toolsets[N_TOOLSETS]; /* by name */
    size_t n_toolsets;
    uint64_t revision;
    struct linked_asked *attached[N_ATTACHED];
    struct linked_asked *asked[LINKED_ASKED];
    unsigned n_queried;
    unsigned n_dropped;
    /* The calls that the gateway named. */
    char ids[N_NAMED][BUS_ID_TEXT];
    char routes[N_NAMED][BUS_ADDRESS_TEXT];
    unsigned n_ids;
} world;

/* ---- what the gateway says ------------------------------------------------------------------- */

static void check_json(const ProtobufCBinaryData *bytes)
{
    peg_json_doc_free(fuzz_parse_own((const char *)bytes->data, bytes->len));
}

static void note_id(const char *id, const ProtobufCBinaryData *route)
{
    struct bus_id parsed;
    unsigned i = 0;

    REQUIRE(bus_id_parse(peg__str(id), &parsed), "'%s' is an id", id);
    while (i < world.n_ids && strcmp(world.ids[i], id) != 0)
        i++;
    if (i == N_NAMED)
        return;
    if (i == world.n_ids)
        snprintf(world.ids[world.n_ids++], BUS_ID_TEXT, "%s", id);
    if (route)
        snprintf(world.routes[i], BUS_ADDRESS_TEXT, "%.*s", (int)route->len,
                 (const char *)route->data);
}

static void check_call(const Pegboard__V1__Call *call)
{
    struct bus_address route;

    check_json(&call->payload);
    REQUIRE(call->attempt > 0 && call->timeout_ms > 0, "a call has an attempt and some time");
    REQUIRE(bus_address_parse(peg__strn((const char *)call->route.data, call->route.len), &route),
            "a call has a route");
    note_id(call->call_id, &call->route);
}

static void check_response(const Pegboard__V1__CallToolResponse *response)
{
    note_id(response->call_id, NULL);
    REQUIRE(!response->error || !response->result.len, "a result or an error");
    if (!response->error)
        check_json(&response->result);
    for (size_t i = 0; i < response->n_server_data; i++)
        check_json(&response->server_data[i]->data);
}

static void on_message(const struct linked_asked *asked, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *kind = asked->method->output;

    if (kind == &pegboard__v1__attach_response__descriptor) {
        const Pegboard__V1__AttachResponse *frame = (const Pegboard__V1__AttachResponse *)message;

        if (frame->frame_case == PEGBOARD__V1__ATTACH_RESPONSE__FRAME_CALL)
            check_call(frame->call);
    } else if (kind == &pegboard__v1__call_tool_response__descriptor) {
        check_response((const Pegboard__V1__CallToolResponse *)message);
    } else if (kind == &pegboard__v1__start_tool_response__descriptor) {
        note_id(((const Pegboard__V1__StartToolResponse *)message)->call_id, NULL);
    } else if (kind == &pegboard__v1__call_tool_stream_response__descriptor) {
        const Pegboard__V1__CallToolStreamResponse *event =
            (const Pegboard__V1__CallToolStreamResponse *)message;

        if (event->event_case == PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_STARTED)
            note_id(event->started->call_id, NULL);
        else if (event->event_case == PEGBOARD__V1__CALL_TOOL_STREAM_RESPONSE__EVENT_RESULT)
            check_response(event->result);
    }
}

/* ---- the catalog ----------------------------------------------------------------------------- */

static struct gw_search_index *index_toolsets(struct gw_toolset *const *toolsets, size_t n)
{
    struct gw_search_index *empty;
    struct gw_search_index *index;
    struct gw_language language;

    REQUIRE(gw_language_find("english", &language), "a language");
    empty = gw_search_index_new(language);
    REQUIRE(empty, "memory");
    index = gw_search_index_next(empty, 0, (struct gw_toolsets){.n = 0},
                                 (struct gw_toolsets){.list = toolsets, .n = n});
    REQUIRE(index, "memory");
    gw_search_index_unref(empty);
    return index;
}

static void publish(void)
{
    const size_t bytes = sizeof(struct gw_snapshot) + sizeof(world.toolsets);
    struct gw_snapshot *snapshot = peg__alloc_zero(1, bytes);
    struct gw_toolset **toolsets = (struct gw_toolset **)(void *)(snapshot + 1);

    REQUIRE(snapshot, "memory");
    atomic_init(&snapshot->n_refs, 1);
    for (size_t i = 0; i < world.n_toolsets; i++)
        toolsets[i] = gw_toolset_ref(world.toolsets[i]);
    snapshot->toolsets = toolsets;
    snapshot->n = world.n_toolsets;
    snapshot->number = world.revision;
    snapshot->index = index_toolsets(toolsets, world.n_toolsets);
    gw_router_on_snapshot(&world.router, snapshot);
    gw_snapshot_unref(snapshot);
}

/* Where it stands, or belongs. */
static size_t place_of(peg_str name, bool *ret_is_there)
{
    size_t i = 0;

    while (i < world.n_toolsets && strcmp(world.toolsets[i]->name.ptr, name.ptr) < 0)
        i++;
    *ret_is_there = i < world.n_toolsets && peg__str_eq(world.toolsets[i]->name, name);
    return i;
}

static void take_away(peg_str name)
{
    bool is_there;
    const size_t at = place_of(name, &is_there);

    if (!is_there)
        return;
    gw_toolset_unref(world.toolsets[at]);
    memmove(world.toolsets + at, world.toolsets + at + 1,
            (--world.n_toolsets - at) * sizeof(world.toolsets[0]));
    world.revision++;
    publish();
}

static void put(const Pegboard__V1__RegisterRequest *request)
{
    const struct gw_toolset_dates dates = {.owner = peg__str("anyone"),
                                           .revision = ++world.revision};
    struct gw_toolset *toolset = NULL;
    bool is_there;
    size_t at;

    if (gw_toolset_make(request, &dates, &toolset, NULL))
        return;
    at = place_of(toolset->name, &is_there);
    if (is_there) {
        gw_toolset_unref(world.toolsets[at]);
    } else if (world.n_toolsets == N_TOOLSETS) {
        gw_toolset_unref(toolset);
        return;
    } else {
        memmove(world.toolsets + at + 1, world.toolsets + at,
                (world.n_toolsets++ - at) * sizeof(world.toolsets[0]));
    }
    world.toolsets[at] = toolset;
    publish();
}

/* Two tools: "add", and "peek", which may be started again. */
static void put_sums(void)
{
    static char input[] = "{\"type\":\"object\",\"required\":[\"n\"]}";
    static char output[] = "{\"type\":\"integer\"}";
    static char names[3][8] = {"sums", "add", "peek"};
    Pegboard__V1__Tool add = PEGBOARD__V1__TOOL__INIT;
    Pegboard__V1__Tool peek;
    Pegboard__V1__Tool *tools[] = {&add, &peek};
    Pegboard__V1__RegisterRequest request = PEGBOARD__V1__REGISTER_REQUEST__INIT;

    add.name = names[1];
    add.input_schema = (ProtobufCBinaryData){sizeof(input) - 1, (uint8_t *)input};
    add.output_schema = (ProtobufCBinaryData){sizeof(output) - 1, (uint8_t *)output};
    peek = add;
    peek.name = names[2];
    peek.idempotent = true;
    request.name = names[0];
    request.tools = tools;
    request.n_tools = 2;
    put(&request);
    REQUIRE(world.n_toolsets == 1, "a toolset");
}

/* ---- messages that mean this world ----------------------------------------------------------- */

static bool is_digit(const char *text, size_t len)
{
    return len == 1 && text[0] >= '0' && text[0] <= '9' && world.n_ids > 0;
}

static unsigned identity(char digit)
{
    return (unsigned)(digit - '0') % world.n_ids;
}

static void mean_text(const ProtobufCFieldDescriptor *field, char **text)
{
    const bool is_id =
        strcmp(field->name, "call_id") == 0 || strcmp(field->name, "tool_use_id") == 0;

    if (is_id && *text && is_digit(*text, strlen(*text)))
        *text = world.ids[identity((*text)[0])];
}

static void mean_bytes(const ProtobufCFieldDescriptor *field, ProtobufCBinaryData *bytes)
{
    char *route;

    if (strcmp(field->name, "route") != 0 || !is_digit((const char *)bytes->data, bytes->len))
        return;
    route = world.routes[identity((char)bytes->data[0])];
    *bytes = (ProtobufCBinaryData){strlen(route), (uint8_t *)route};
}

static void mean_number(const ProtobufCFieldDescriptor *field, int64_t *number)
{
    if (strcmp(field->name, "timeout_ms") == 0 && *number > MAX_MS)
        *number %= MAX_MS;
}

static void mean(ProtobufCMessage *message);

/* NOLINTNEXTLINE(misc-no-recursion): PEG_LIMIT_GRPC_MESSAGE_DEPTH bounds what was unpacked. */
static void mean_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    char *at = (char *)message + field->offset;
    const char *quantifier = (const char *)message + field->quantifier_offset;

    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        const size_t n = *(const size_t *)(const void *)quantifier;

        for (size_t i = 0; field->type == PROTOBUF_C_TYPE_MESSAGE && i < n; i++)
            mean((*(ProtobufCMessage ***)(void *)at)[i]);
    } else if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
               *(const uint32_t *)(const void *)quantifier != field->id) {
        return;
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        mean_text(field, (char **)(void *)at);
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        mean_bytes(field, (ProtobufCBinaryData *)(void *)at);
    } else if (field->type == PROTOBUF_C_TYPE_INT64) {
        mean_number(field, (int64_t *)(void *)at);
    } else if (field->type == PROTOBUF_C_TYPE_MESSAGE && *(ProtobufCMessage **)(void *)at) {
        mean(*(ProtobufCMessage **)(void *)at);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): as above. */
static void mean(ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++)
        mean_field(message, &message->descriptor->fields[i]);
}

/* A registration takes effect before its message is sent without it. */
static void play_catalog(ProtobufCMessage *message)
{
    Pegboard__V1__AttachRequest *frame = (Pegboard__V1__AttachRequest *)message;

    if (message->descriptor != &pegboard__v1__attach_request__descriptor ||
        frame->frame_case != PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO ||
        !frame->hello->registration)
        return;
    put(frame->hello->registration);
    frame->hello->registration = NULL;
}

/* Bytes that are no message are sent as they are. */
static void say(struct linked_asked *asked, peg_str bytes)
{
    struct peg__arena arena = {0};
    const ProtobufCMessage *read = NULL;
    uint8_t *packed = NULL;

    if (grpc_message_unpack(asked->method->input, &arena, bytes, &read, NULL) == PEG_OK) {
        ProtobufCMessage *message = (ProtobufCMessage *)peg__unconst(read);

        mean(message);
        play_catalog(message);
        packed = malloc(grpc_message_packed_size(message) + 1);
        REQUIRE(packed, "memory");
        bytes = peg__strn((const char *)packed, grpc_message_packed_size(message));
        grpc_message_pack(message, packed);
    } else {
        asked->said_garbage = true;
    }
    (void)grpc_stream_send(&asked->stream, bytes, NULL);
    free(packed);
    peg__arena_free(&arena);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void pass(int64_t ms)
{
    linked_talk();
    bus_sim_run_until(world.sim, bus_sim_now_ns(world.sim) + ms * 1000000);
    linked_talk();
}

static void say_frame(unsigned number, peg_str frame)
{
    struct linked_asked **attached = &world.attached[number % N_ATTACHED];

    if (!*attached || (*attached)->is_over)
        *attached = linked_ask(&pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_ATTACH]);
    if (*attached)
        say(*attached, frame);
}

static void end_attached(unsigned number, bool in_order)
{
    struct linked_asked *attached = world.attached[number % N_ATTACHED];

    if (!attached || attached->is_over)
        return;
    if (in_order)
        (void)grpc_stream_end(&attached->stream, NULL, NULL);
    else
        linked_drop(attached, number % 2 != 0);
}

/* Of the catalog, and with threads or a loop: Register, Unregister, Watch and the administration
 * are not served here. */
static bool is_served(const struct grpc_method *method)
{
    return method->input && !strstr(method->path, "/Register") && !strstr(method->path, "Unreg") &&
           !strstr(method->path, "/Watch") && !strstr(method->path, "Admin") &&
           !method->client_streams;
}

static void change_catalog(const struct grpc_method *method, peg_str bytes)
{
    struct peg__arena arena = {0};
    const ProtobufCMessage *message = NULL;

    if (grpc_message_unpack(method->input, &arena, bytes, &message, NULL) == PEG_OK) {
        mean((ProtobufCMessage *)peg__unconst(message));
        if (method->input == &pegboard__v1__register_request__descriptor)
            put((const Pegboard__V1__RegisterRequest *)message);
        else if (method->input == &pegboard__v1__unregister_request__descriptor)
            take_away(peg__str(((const Pegboard__V1__UnregisterRequest *)message)->name));
    }
    peg__arena_free(&arena);
}

static void say_request(peg_str text)
{
    const struct grpc_method *method = fuzz_method(fuzz_line(&text));
    struct linked_asked *asked;

    if (!method)
        return;
    if (!is_served(method)) {
        change_catalog(method, text);
        return;
    }
    asked = linked_ask(method);
    if (!asked)
        return;
    world.asked[world.n_queried++] = asked;
    say(asked, text);
    (void)grpc_stream_end(&asked->stream, NULL, NULL);
}

static void drop_request(unsigned number)
{
    if (world.n_queried)
        linked_drop(world.asked[number % world.n_queried], world.n_dropped++ % 2 != 0);
}

static peg_str take_text(peg_str *rest)
{
    size_t len;
    peg_str text;

    if (rest->len < 2)
        return peg__str("");
    len = (uint8_t)rest->ptr[0] | (size_t)(uint8_t)rest->ptr[1] << 8;
    *rest = peg__str_from(*rest, 2);
    text = peg__strn(rest->ptr, len < rest->len ? len : rest->len);
    *rest = peg__str_from(*rest, text.len);
    return text;
}

static void step(peg_str *rest)
{
    static const int64_t times_ms[] = {0, 1, 6, 100, 1000, 5000, 11000, 31000};
    const char message = rest->ptr[0];
    const unsigned number = (uint8_t)rest->ptr[1];

    *rest = peg__str_from(*rest, 2);
    switch (tolower((unsigned char)message)) {
    case 'a':
        say_frame(number, take_text(rest));
        break;
    case 'e':
    case 'x':
        end_attached(number, tolower((unsigned char)message) == 'e');
        break;
    case 'c':
        say_request(take_text(rest));
        break;
    case 'd':
        drop_request(number);
        break;
    case 't':
        pass(times_ms[number % (sizeof(times_ms) / sizeof(times_ms[0]))]);
        break;
    default:
        break;
    }
    pass(islower((unsigned char)message) ? 5 : 0);
}

/* ---- the world ------------------------------------------------------------------------------- */

static void init(void)
{
    world.node.n_loops = 1;
    world.node.calls = &world.calls;
    world.node.presences = &world.presence;
    world.node.bus_kind = "sim";
    world.node.store_kind = "none";
    world.node.ping_interval_ms = 10000;
    linked_init();
    linked.on_message = on_message;
    REQUIRE(bus_sim_new(&world.sim, NULL) == PEG_OK, "a bus");
    REQUIRE(gw_service_registry_add(&linked.server, &world.node, NULL) == PEG_OK &&
                gw_service_compat_add(&linked.server, &world.node, NULL) == PEG_OK,
            "services");
}

static void begin(void)
{
    static const struct bus_events events = {.on_message = calls_on_message,
                                             .on_reset = calls_on_reset};
    static const struct gw_presence_options health = {.ping_interval_ms = 10000, .missed_pings = 3};
    static const struct calls_options options = {.keep_ms = KEEP_MS};
    uint64_t id;

    bus_sim_begin(world.sim, 1, NULL, NULL);
    REQUIRE(bus_sim_add_node(world.sim, 1, &world.bus, &id) == PEG_OK, "a node");
    world.node.id = id;
    REQUIRE(gw_presence_new(world.bus, &health, NULL, NULL, &world.presence, NULL) == PEG_OK,
            "presence");
    REQUIRE(gw_router_init(&world.router,
                           &(struct gw_router_options){
                               .bus = world.bus,
                               .calls = &options,
                               .presence = world.presence,
                           },
                           NULL) == PEG_OK,
            "calls");
    world.calls = world.router.calls;
    memset(world.calls->random, 0, sizeof(world.calls->random)); /* an input is always the same */
    for (size_t i = 0; i < sizeof(world.calls->random); i++)
        world.calls->random[i] = (unsigned char)(bus_sim_random(world.sim) & 0xFF);
    world.calls->n_random = sizeof(world.calls->random);
    bus_listen(world.bus, &events, world.calls);
    world.n_toolsets = 0;
    world.n_queried = 0;
    world.n_dropped = 0;
    world.n_ids = 0;
    memset(world.attached, 0, sizeof(world.attached));
    memset(world.routes, 0, sizeof(world.routes));
    put_sums();
    linked_open();
    pass(5);
}

/* Long enough for every call to be over, and for every provider that does not come back. */
static void check_end(void)
{
    pass(2 * MAX_MS);
    for (unsigned i = 0; i < world.n_queried; i++)
        REQUIRE(world.asked[i]->is_over, "%s was not answered", world.asked[i]->method->path);
    for (unsigned i = 0; i < N_ATTACHED; i++)
        end_attached(i, false);
    pass(2 * MAX_MS);
    REQUIRE(calls_count(world.calls) == 0, "%zu calls are left", calls_count(world.calls));
    REQUIRE(peg__quota_used(&world.calls->quotas.providers) == 0, "%zu providers are left",
            peg__quota_used(&world.calls->quotas.providers));
    REQUIRE(peg__quota_used(&world.calls->results->bytes) == 0, "%zu bytes of results are left",
            peg__quota_used(&world.calls->results->bytes));
    REQUIRE(bus_sim_n_registers(world.sim, 0) == 0, "%zu registers are left",
            bus_sim_n_registers(world.sim, 0));
}

static void end(void)
{
    linked_close();
    gw_router_clear(&world.router);
    gw_presence_free(world.presence);
    bus_sim_crash(world.sim, world.node.id);
    bus_free(world.bus);
    for (size_t i = 0; i < world.n_toolsets; i++)
        gw_toolset_unref(world.toolsets[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str rest = fuzz_input(data, size);

    if (!world.sim)
        init();
    begin();
    while (rest.len >= 2)
        step(&rest);
    check_end();
    end();
    return 0;
}
