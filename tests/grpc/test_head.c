/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "grpc/http2/http2.h"
#include "t.h"

enum { MAX_BYTES = 8 << 10 };

/* A head with the arena that it lies in. */
struct held {
    struct peg__arena arena;
    struct grpc_head head;
    peg_error error;
};

static void begin(struct held *held)
{
    *held = (struct held){0};
    grpc_head_init(&held->head, &held->arena, MAX_BYTES);
}

/* Adds copies that are gone afterwards, as HTTP/2's are. */
static peg_status try_add(struct held *held, const char *name, const char *value)
{
    char *name_copy = strdup(name);
    char *value_copy = strdup(value);
    const peg_status status =
        grpc_head_add(&held->head, peg__str(name_copy), peg__str(value_copy), &held->error);

    free(name_copy);
    free(value_copy);
    return status;
}

static void add(struct held *held, const char *name, const char *value)
{
    CHECK_STATUS(try_add(held, name, value), PEG_OK, held->error);
}

static void end(struct held *held)
{
    peg__arena_free(&held->arena);
}

/* ---- requests ------------------------------------------------------------------------------- */

TEST(a_request_is_read_field_by_field)
{
    struct held held;

    begin(&held);
    add(&held, ":method", "POST");
    add(&held, ":scheme", "http");
    add(&held, ":path", "/a.B/C");
    add(&held, ":authority", "localhost:50051");
    add(&held, "content-type", "application/grpc");
    add(&held, "user-agent", "grpc-c/1");
    add(&held, "te", "trailers");
    add(&held, "grpc-timeout", "10S");
    add(&held, "grpc-encoding", "gzip");
    add(&held, "grpc-accept-encoding", "identity,deflate,gzip");
    add(&held, "x-request", "7");

    CHECK_STR(held.head.method, "POST");
    CHECK_STR(held.head.path, "/a.B/C");
    CHECK_STR(held.head.authority, "localhost:50051");
    CHECK_STR(held.head.content_type, "application/grpc");
    CHECK_STR(held.head.user_agent, "grpc-c/1");
    CHECK(held.head.has_te_trailers);
    CHECK_INT(held.head.timeout_ns, 10000000000);
    CHECK(!held.head.has_bad_timeout);
    CHECK_INT(held.head.encoding, GRPC_GZIP);
    CHECK(held.head.accepts_gzip);
    CHECK_INT(held.head.metadata.n, 1);
    CHECK_STR(grpc_metadata_get(&held.head.metadata, "x-request"), "7");
    end(&held);
}

TEST(an_empty_head_has_nothing)
{
    struct held held;

    begin(&held);
    CHECK(!held.head.method.ptr && !held.head.path.ptr && !held.head.content_type.ptr);
    CHECK_INT(held.head.http_status, 0);
    CHECK_INT(held.head.timeout_ns, -1);
    CHECK_INT(held.head.encoding, GRPC_IDENTITY);
    CHECK(!held.head.accepts_gzip && !held.head.has_status && !held.head.has_te_trailers);
    CHECK(!grpc_head_is_grpc(&held.head));
    CHECK_INT(held.head.n_bytes, 0);
    end(&held);
}

TEST(strings_that_are_kept_end_with_nul)
{
    struct held held;

    begin(&held);
    add(&held, ":path", "/p");
    add(&held, ":method", "GET");
    add(&held, "user-agent", "");
    CHECK_STR(peg__str(held.head.path.ptr), "/p");
    CHECK_STR(peg__str(held.head.method.ptr), "GET");
    CHECK_STR(peg__str(held.head.user_agent.ptr), "");
    end(&held);
}

TEST(the_first_of_two_fields_of_the_protocol_counts)
{
    struct held held;

    begin(&held);
    add(&held, "content-type", "application/grpc");
    add(&held, "content-type", "text/plain");
    add(&held, "grpc-timeout", "1S");
    add(&held, "grpc-timeout", "2S");
    add(&held, "grpc-encoding", "identity");
    add(&held, "grpc-encoding", "gzip");
    add(&held, "grpc-status", "5");
    add(&held, "grpc-status", "0");
    add(&held, "grpc-message", "first");
    add(&held, "grpc-message", "second");
    add(&held, "grpc-status-details-bin", "YQ");
    add(&held, "grpc-status-details-bin", "*");
    add(&held, "user-agent", "a");
    add(&held, "user-agent", "b");

    CHECK_STR(held.head.content_type, "application/grpc");
    CHECK_INT(held.head.timeout_ns, 1000000000);
    CHECK_INT(held.head.encoding, GRPC_IDENTITY);
    CHECK_STR(held.head.encoding_name, "identity");
    CHECK_INT(held.head.code, GRPC_NOT_FOUND);
    CHECK_STR(held.head.message, "first");
    CHECK_STR(held.head.details, "a");
    CHECK_STR(held.head.user_agent, "a");
    CHECK_INT(held.head.metadata.n, 0);
    end(&held);
}

TEST(a_timeout_that_is_none_is_remembered)
{
    struct held held;

    begin(&held);
    add(&held, "grpc-timeout", "soon");
    add(&held, "grpc-timeout", "1S");
    CHECK(held.head.has_bad_timeout);
    CHECK_INT(held.head.timeout_ns, -1);
    end(&held);
}

TEST(host_stands_in_for_an_authority_that_did_not_come)
{
    struct held held;

    begin(&held);
    add(&held, "host", "a");
    CHECK_STR(held.head.authority, "a");
    end(&held);

    begin(&held);
    add(&held, ":authority", "b");
    add(&held, "host", "a");
    CHECK_STR(held.head.authority, "b");
    CHECK_INT(held.head.metadata.n, 0);
    end(&held);
}

TEST(an_encoding_that_is_not_ours_keeps_its_name)
{
    struct held held;

    begin(&held);
    add(&held, "grpc-encoding", "snappy");
    CHECK_INT(held.head.encoding, GRPC_ENCODING_UNKNOWN);
    CHECK_STR(held.head.encoding_name, "snappy");
    end(&held);
}

static bool accepts_gzip(const char *list)
{
    struct held held;
    bool does;

    begin(&held);
    add(&held, "grpc-accept-encoding", list);
    does = held.head.accepts_gzip;
    end(&held);
    return does;
}

TEST(gzip_is_found_in_a_list_wherever_it_stands)
{
    CHECK(accepts_gzip("gzip"));
    CHECK(accepts_gzip("identity, gzip"));
    CHECK(accepts_gzip(" gzip ,deflate"));
    CHECK(accepts_gzip("identity,,gzip"));
    CHECK(!accepts_gzip(""));
    CHECK(!accepts_gzip("identity"));
    CHECK(!accepts_gzip("xgzip,gzipx,gzi"));
    CHECK(!accepts_gzip(" , ,"));
}

TEST(te_must_say_trailers)
{
    struct held held;

    begin(&held);
    add(&held, "te", "gzip");
    CHECK(!held.head.has_te_trailers);
    add(&held, "te", "Trailers");
    CHECK(held.head.has_te_trailers);
    end(&held);
}

static bool is_grpc(const char *type)
{
    struct held held;
    bool is;

    begin(&held);
    add(&held, "content-type", type);
    is = grpc_head_is_grpc(&held.head);
    end(&held);
    return is;
}

TEST(content_types_of_grpc_are_known)
{
    CHECK(is_grpc("application/grpc"));
    CHECK(is_grpc("application/grpc+proto"));
    CHECK(is_grpc("application/grpc;charset=utf-8"));
    CHECK(is_grpc("Application/GRPC"));
    CHECK(!is_grpc("application/grpc-web"));
    CHECK(!is_grpc("application/grpcx"));
    CHECK(!is_grpc("application/gr"));
    CHECK(!is_grpc("application/json"));
    CHECK(!is_grpc(""));
}

/* ---- answers -------------------------------------------------------------------------------- */

TEST(the_end_of_a_call_is_read)
{
    struct held held;

    begin(&held);
    add(&held, ":status", "200");
    add(&held, "grpc-status", "3");
    add(&held, "grpc-message", "sch%C3%B6n 100%");
    add(&held, "grpc-status-details-bin", "CAM");
    add(&held, "x-trailer", "t");

    CHECK_INT(held.head.http_status, 200);
    CHECK(held.head.has_status);
    CHECK_INT(held.head.code, GRPC_INVALID_ARGUMENT);
    CHECK_STR(held.head.message, "sch\xC3\xB6n 100%");
    CHECK_STR(held.head.details, "\x08\x03");
    CHECK_INT(held.head.metadata.n, 1);
    end(&held);
}

TEST(a_status_that_is_no_number_is_unknown)
{
    struct held held;

    begin(&held);
    add(&held, "grpc-status", "fine");
    add(&held, ":status", "20x");
    CHECK(held.head.has_status);
    CHECK_INT(held.head.code, GRPC_UNKNOWN);
    CHECK_INT(held.head.http_status, 0);
    end(&held);
}

TEST(details_that_are_not_base_64_are_refused)
{
    struct held held;

    begin(&held);
    CHECK_STATUS(try_add(&held, "grpc-status-details-bin", "no!base"), PEG_EPARSE, held.error);
    CHECK_STR(peg__str(held.error.code), "E_METADATA");
    CHECK(!held.head.details.ptr);
    CHECK_INT(held.head.n_bytes, 0);
    end(&held);
}

/* ---- metadata ------------------------------------------------------------------------------- */

TEST(names_of_the_protocol_are_no_metadata)
{
    static const char *const names[] = {
        "grpc-message-type",
        "grpc-internal-thing",
        "grpc-a",
        "content-length",
        ":protocol",
        ":p",
        ":unknown---",
        "grpc-statux",
        "grpc-timeoux",
        "grpc-accept-encodinx",
        "grpc-status-details-bix",
    };
    struct held held;

    begin(&held);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        add(&held, names[i], "1");
    CHECK_INT(held.head.metadata.n, 0);
    end(&held);
}

TEST(names_of_the_same_length_as_the_protocols_are_metadata)
{
    static const char *const names[] = {"ab",           "abcd",        "x-request1",
                                        "content-typo", "x-accepting", "authorization"};
    struct held held;

    begin(&held);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        add(&held, names[i], "1");
    CHECK_INT(held.head.metadata.n, sizeof(names) / sizeof(names[0]));
    end(&held);
}

TEST(tracing_fields_of_grpc_are_metadata)
{
    struct held held;

    begin(&held);
    add(&held, "grpc-trace-bin", "YQ");
    add(&held, "grpc-tags-bin", "Yg");
    CHECK_STR(grpc_metadata_get(&held.head.metadata, "grpc-trace-bin"), "a");
    CHECK_STR(grpc_metadata_get(&held.head.metadata, "grpc-tags-bin"), "b");
    end(&held);
}

/* ---- limits --------------------------------------------------------------------------------- */

TEST(fields_are_counted_as_http2_does_up_to_the_limit)
{
    struct held held;
    char value[128];

    memset(value, 'v', sizeof(value));
    begin(&held);
    held.head.max_bytes = 100;
    value[100 - 33] = '\0';
    add(&held, "k", value);
    CHECK_INT(held.head.n_bytes, 100);
    CHECK_STATUS(try_add(&held, "", ""), PEG_ELIMIT, held.error);
    CHECK_STR(peg__str(held.error.code), "E_METADATA");
    CHECK(strstr(held.error.message, "max_header_bytes"));
    CHECK_INT(held.head.n_bytes, 100);
    CHECK_INT(held.head.metadata.n, 1);
    end(&held);
}

TEST(fields_that_are_left_out_count_too)
{
    struct held held;
    peg_status status = PEG_OK;
    int n = 0;

    begin(&held);
    while (!status && n < 100000) {
        status = try_add(&held, "grpc-x", "");
        n++;
    }
    CHECK_STATUS(status, PEG_ELIMIT, held.error);
    CHECK_INT(n, MAX_BYTES / 38 + 1);
    end(&held);
}

TEST(commas_in_a_binary_value_count_as_fields)
{
    struct held held;
    char commas[4096];

    memset(commas, ',', sizeof(commas));
    commas[sizeof(commas) - 1] = '\0';
    begin(&held);
    CHECK_STATUS(try_add(&held, "a-bin", commas), PEG_ELIMIT, held.error);
    CHECK_INT(held.arena.held, 0);
    end(&held);
}

TEST(what_a_head_holds_is_bounded_by_its_limit)
{
    struct held held;
    char percents[MAX_BYTES];

    memset(percents, '%', sizeof(percents));
    percents[sizeof(percents) - 64] = '\0';
    begin(&held);
    add(&held, "grpc-message", percents);
    CHECK_INT(held.head.message.len, sizeof(percents) - 64);
    CHECK(held.arena.held <= 4 * MAX_BYTES);
    end(&held);
}

TORTURE(a_head_survives_any_allocation_failure)
{
    static const char *const fields[][2] = {
        {":method", "PUT"},        {":path", "/some/path"},
        {":authority", "host"},    {"content-type", "application/grpc+proto"},
        {"user-agent", "agent"},   {"grpc-encoding", "snappy"},
        {"grpc-message", "m%20m"}, {"grpc-status-details-bin", "YWFh"},
        {"x-key", "value"},        {"x-key-bin", "YWFh,YWFh"},
    };
    struct held held;
    peg_status status = PEG_OK;

    begin(&held);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && !status; i++) {
        struct peg__arena fresh = {0}; /* so that each field allocates */
        struct peg__arena *const all = held.head.arena;
        const size_t before = held.head.n_bytes;

        held.head.arena = &fresh;
        status =
            grpc_head_add(&held.head, peg__str(fields[i][0]), peg__str(fields[i][1]), &held.error);
        held.head.arena = all;
        CHECK_INT(held.head.n_bytes > before, status == PEG_OK);
        held.head.metadata = (struct grpc_metadata){0};
        peg__arena_free(&fresh);
    }
    end(&held);
    return status;
}
