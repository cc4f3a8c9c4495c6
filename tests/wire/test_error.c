/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"

#include "wire/wire.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "goapb/goa.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "grpc/message.h"
#include "json/json.h"

enum { NO_LIMIT = 1 << 20 };
static const enum wire_error all_after_ok = WIRE_OK + 1;

static const Google__Rpc__Status *unpack_details(peg_str details, struct peg__arena *arena)
{
    const ProtobufCMessage *message = NULL;

    if (grpc_message_unpack(&google__rpc__status__descriptor, arena, details, &message, NULL))
        T_FAIL("the details are no google.rpc.Status");
    return (const Google__Rpc__Status *)message;
}

static const Goapb__ErrorResponse *unpack_error(const Google__Rpc__Status *status,
                                                struct peg__arena *arena)
{
    const Google__Protobuf__Any *any = status->details[0];
    const ProtobufCMessage *message = NULL;

    if (grpc_message_unpack(&goapb__error_response__descriptor, arena,
                            peg__strn((const char *)any->value.data, any->value.len), &message,
                            NULL))
        T_FAIL("the detail is no goapb.ErrorResponse");
    return (const Goapb__ErrorResponse *)message;
}

TEST(every_error_is_found_by_its_name)
{
    for (int error = all_after_ok; error < WIRE_N_ERRORS; error++) {
        const char *name = wire_error_name((enum wire_error)error);

        CHECK(name && name[0]);
        CHECK_INT(wire_error_of(peg__str(name)), error);
        CHECK(wire_error_code((enum wire_error)error) != GRPC_OK);
    }
    CHECK_INT(wire_error_of(peg__str("no_such_error")), WIRE_FAULT);
    CHECK_INT(wire_error_of(peg__str("ok")), WIRE_FAULT);
    CHECK_INT(wire_error_of(peg__str("")), WIRE_FAULT);
}

TEST(an_error_that_is_none_is_a_fault)
{
    CHECK_STR(peg__str(wire_error_name((enum wire_error)99)), "fault");
    CHECK_INT(wire_error_code((enum wire_error) - 1), GRPC_INTERNAL);
}

TEST(a_status_carries_one_detail_that_goa_clients_read)
{
    struct peg__arena arena = {0};
    struct grpc_status status;
    const Google__Rpc__Status *details;
    const Goapb__ErrorResponse *error;

    wire_error_status(WIRE_NOT_FOUND, peg__str("there is no toolset 'x'"), NO_LIMIT, &arena,
                      &status);

    CHECK_INT(status.code, GRPC_NOT_FOUND);
    CHECK_STR(status.message, "there is no toolset 'x'");
    details = unpack_details(status.details, &arena);
    CHECK_INT(details->code, GRPC_NOT_FOUND);
    CHECK_STR(peg__str(details->message), "there is no toolset 'x'");
    CHECK_INT(details->n_details, 1);
    CHECK_STR(peg__str(details->details[0]->type_url), "type.googleapis.com/goapb.ErrorResponse");
    error = unpack_error(details, &arena);
    CHECK_STR(peg__str(error->name), "not_found");
    CHECK_STR(peg__str(error->msg), "there is no toolset 'x'");
    CHECK_INT(strlen(error->id), 8);
    CHECK(!error->temporary && !error->timeout && !error->fault);
    peg__arena_free(&arena);
}

TEST(two_errors_have_different_ids_and_a_fault_says_that_it_is_one)
{
    struct peg__arena arena = {0};
    struct grpc_status first;
    struct grpc_status second;
    const Goapb__ErrorResponse *a;
    const Goapb__ErrorResponse *b;

    wire_error_status(WIRE_FAULT, peg__str("x"), NO_LIMIT, &arena, &first);
    wire_error_status(WIRE_FAULT, peg__str("x"), NO_LIMIT, &arena, &second);

    a = unpack_error(unpack_details(first.details, &arena), &arena);
    b = unpack_error(unpack_details(second.details, &arena), &arena);
    CHECK(strcmp(a->id, b->id) != 0);
    CHECK(a->fault);
    peg__arena_free(&arena);
}

TEST(success_has_no_detail)
{
    struct peg__arena arena = {0};
    struct grpc_status status;
    peg_str name;

    wire_error_status(WIRE_OK, peg__str(""), NO_LIMIT, &arena, &status);

    CHECK_INT(status.code, GRPC_OK);
    CHECK_INT(status.details.len, 0);
    CHECK_INT(wire_error_from_status(&status, &arena, &name), WIRE_OK);
    CHECK_STR(name, "ok");
    peg__arena_free(&arena);
}

TEST(words_that_are_no_text_become_text)
{
    struct peg__arena arena = {0};
    struct grpc_status status;

    wire_error_status(WIRE_VALIDATION, peg__strn("a\0b\xff\xc3\xa4\xc3", 7), NO_LIMIT, &arena,
                      &status);

    CHECK_STR(status.message, "a?b?\xc3\xa4?");
    CHECK_STR(peg__str(unpack_details(status.details, &arena)->message), "a?b?\xc3\xa4?");
    peg__arena_free(&arena);
}

/* What the status takes on the wire. */
static size_t wire_bytes(const struct grpc_status *status)
{
    static char text[3 * PEG_LIMIT_GATEWAY_MESSAGE_BYTES];

    return grpc_percent_encode(status->message, text) + peg__base64_len(status->details.len);
}

static void check_fits(peg_str words, size_t max)
{
    struct peg__arena arena = {0};
    struct grpc_status status;
    const Google__Rpc__Status *details;

    wire_error_status(WIRE_VALIDATION, words, max, &arena, &status);
    details = unpack_details(status.details, &arena);
    if (wire_bytes(&status) > max)
        T_FAIL("%zu bytes, at most %zu", wire_bytes(&status), max);
    CHECK(wire_bytes(&status) > max / 2);
    CHECK(peg__utf8_is_valid(status.message));
    CHECK(memmem(status.message.ptr, status.message.len, "\xE2\x80\xA6", 3) != NULL);
    CHECK_STR(status.message, details->message); /* stock clients compare them */
    CHECK_STR(peg__str(unpack_error(details, &arena)->name), "validation_error");
    peg__arena_free(&arena);
}

TEST(words_are_cut_so_that_the_status_fits)
{
    static const char *const kinds[] = {
        "a", "%", " ", "\n", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x88", "a \xC3\xA4%"};
    static const size_t maxima[] = {PEG_LIMIT_GRPC_STATUS_WIRE_BYTES, 3000, 1001, 500};
    static char words[PEG_LIMIT_GATEWAY_MESSAGE_BYTES];

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const size_t n = strlen(kinds[i]);

        for (size_t at = 0; at + n <= sizeof(words); at += n)
            memcpy(words + at, kinds[i], n);
        for (size_t k = 0; k < 4; k++)
            check_fits(peg__strn(words, sizeof(words) / n * n), maxima[k]);
    }
}

TEST(a_status_that_cannot_fit_has_its_name_and_no_words)
{
    struct peg__arena arena = {0};
    struct grpc_status status;

    wire_error_status(WIRE_VALIDATION, peg__str("words"), 0, &arena, &status);
    CHECK_INT(status.message.len, 0);
    CHECK_STR(peg__str(unpack_error(unpack_details(status.details, &arena), &arena)->name),
              "validation_error");
    peg__arena_free(&arena);
}

TEST(a_report_is_cut_behind_a_line_and_says_how_many_more_there_are)
{
    struct peg__buf report = PEG__BUF(PEG_LIMIT_GATEWAY_MESSAGE_BYTES);
    struct peg__arena arena = {0};
    struct grpc_status status;
    unsigned n_lines = 1;
    unsigned n_more = 0;
    const char *end;

    peg__buf_puts(&report, "payload validation failed: at /a0: must be shorter");
    for (unsigned i = 1; i < 100; i++)
        peg__buf_printf(&report, "\nat /a%u: must be shorter", i);
    peg__buf_puts(&report, "\nand 7 more");
    wire_error_status(WIRE_VALIDATION, peg__buf_view(&report), PEG_LIMIT_GRPC_STATUS_WIRE_BYTES,
                      &arena, &status);
    end = strstr(status.message.ptr, "\n\xE2\x80\xA6 and ");
    CHECK(end && sscanf(end, "\n\xE2\x80\xA6 and %u more", &n_more) == 1);
    for (const char *at = status.message.ptr; at < end; at++)
        n_lines += *at == '\n';
    CHECK(n_lines > 10);
    CHECK_INT(n_lines + n_more, 107);
    CHECK(strncmp(end - strlen("must be shorter"), "must be shorter", 15) == 0);
    peg__buf_free(&report);
    peg__arena_free(&arena);
}

TEST(what_is_sent_is_read_again)
{
    for (int error = all_after_ok; error < WIRE_N_ERRORS; error++) {
        struct peg__arena arena = {0};
        struct grpc_status status;
        peg_str name;

        wire_error_status((enum wire_error)error, peg__str("words"), NO_LIMIT, &arena, &status);

        CHECK_INT(wire_error_from_status(&status, &arena, &name), error);
        CHECK_STR(name, wire_error_name((enum wire_error)error));
        peg__arena_free(&arena);
    }
}

TEST(a_status_without_a_detail_is_read_by_its_code)
{
    static const struct {
        enum grpc_code code;
        enum wire_error error;
    } cases[] = {
        {GRPC_UNAVAILABLE, WIRE_SERVICE_UNAVAILABLE},
        {GRPC_DEADLINE_EXCEEDED, WIRE_TIMEOUT},
        {GRPC_INVALID_ARGUMENT, WIRE_VALIDATION},
        {GRPC_UNAUTHENTICATED, WIRE_UNAUTHENTICATED},
        {GRPC_UNKNOWN, WIRE_FAULT},
        {(enum grpc_code)77, WIRE_FAULT},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct grpc_status status = {.code = cases[i].code};
        struct peg__arena arena = {0};
        peg_str name;

        CHECK_INT(wire_error_from_status(&status, &arena, &name), cases[i].error);
        CHECK_STR(name, wire_error_name(cases[i].error));
        peg__arena_free(&arena);
    }
}

static peg_str pack_named(const char *type_url, const char *name, uint8_t *room)
{
    Goapb__ErrorResponse error = GOAPB__ERROR_RESPONSE__INIT;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    Google__Protobuf__Any *details[] = {&any};
    Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
    uint8_t packed[256];

    error.name = peg__unconst(name);
    any.type_url = peg__unconst(type_url);
    any.value.data = packed;
    any.value.len = grpc_message_packed_size(&error.base);
    grpc_message_pack(&error.base, packed);
    status.details = details;
    status.n_details = 1;
    grpc_message_pack(&status.base, room);
    return peg__strn((const char *)room, grpc_message_packed_size(&status.base));
}

TEST(a_name_that_is_not_ours_keeps_its_name_and_is_read_by_its_code)
{
    uint8_t room[512];
    struct grpc_status status = {.code = GRPC_INVALID_ARGUMENT};
    struct peg__arena arena = {0};
    peg_str name;

    status.details =
        pack_named("type.googleapis.com/goapb.ErrorResponse", "invalid_enum_value", room);

    CHECK_INT(wire_error_from_status(&status, &arena, &name), WIRE_VALIDATION);
    CHECK_STR(name, "invalid_enum_value");
    peg__arena_free(&arena);
}

TEST(a_detail_of_another_type_is_not_ours)
{
    uint8_t room[512];
    struct grpc_status status = {.code = GRPC_UNAVAILABLE};
    struct peg__arena arena = {0};
    peg_str name;

    status.details = pack_named("type.googleapis.com/google.rpc.RetryInfo", "overloaded", room);

    CHECK_INT(wire_error_from_status(&status, &arena, &name), WIRE_SERVICE_UNAVAILABLE);
    peg__arena_free(&arena);
}

TEST(details_that_are_garbage_are_ignored)
{
    static const char *const garbage[] = {"\xff\xff\xff", "\x1a\x02\x0a\x7f", "\x1a\x00", "\n"};

    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
        const struct grpc_status status = {.code = GRPC_NOT_FOUND, .details = peg__str(garbage[i])};
        struct peg__arena arena = {0};
        peg_str name;

        CHECK_INT(wire_error_from_status(&status, &arena, &name), WIRE_NOT_FOUND);
        CHECK_STR(name, "not_found");
        peg__arena_free(&arena);
    }
}

TEST(what_a_function_fails_with_has_a_word_of_the_registry)
{
    CHECK_INT(wire_error_of_status(PEG_OK), WIRE_OK);
    CHECK_INT(wire_error_of_status(PEG_ESCHEMA), WIRE_VALIDATION);
    CHECK_INT(wire_error_of_status(PEG_EINVAL), WIRE_VALIDATION);
    CHECK_INT(wire_error_of_status(PEG_EPARSE), WIRE_VALIDATION);
    CHECK_INT(wire_error_of_status(PEG_ELIMIT), WIRE_LIMIT);
    CHECK_INT(wire_error_of_status(PEG_ENOTFOUND), WIRE_NOT_FOUND);
    CHECK_INT(wire_error_of_status(PEG_EEXISTS), WIRE_PERMISSION_DENIED);
    CHECK_INT(wire_error_of_status(PEG_ESTATE), WIRE_CONFLICT);
    CHECK_INT(wire_error_of_status(PEG_ENOMEM), WIRE_OVERLOADED);
    CHECK_INT(wire_error_of_status(PEG_EIO), WIRE_FAULT);
}

TORTURE(a_status_without_memory_has_at_least_its_code)
{
    struct peg__arena arena = {0};
    struct grpc_status status;
    bool is_whole;

    wire_error_status(WIRE_TIMEOUT, peg__str("it took too long"), NO_LIMIT, &arena, &status);
    CHECK_INT(status.code, GRPC_DEADLINE_EXCEEDED);
    CHECK(status.message.len > 0);
    is_whole = status.details.len > 0 && peg__str_is(status.message, "it took too long");
    peg__arena_free(&arena);
    return is_whole ? PEG_OK : PEG_ENOMEM;
}
