/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/server/internal.h"

#include "base/limits.h"
#include "base/text/str.h"
#include "google/protobuf/any.grpc.h"
#include "google/rpc/status.grpc.h"
#include "grpc/health/v1/health.grpc.h"
#include "grpc/testing/test.grpc.h"
#include "pegboard/test/echo.grpc.h"
#include "pegboard/test/odd.grpc.h"
#include "t.h"

/* ---- fixture --------------------------------------------------------------------------------- */

static struct grpc_symbols *symbols_of(const struct grpc_file *file)
{
    struct grpc_symbols *symbols = NULL;
    peg_error error;

    CHECK_STATUS(grpc_symbols_new(&file, 1, &symbols, &error), PEG_OK, error);
    return symbols;
}

static const char *file_of(const struct grpc_symbols *symbols, const char *name)
{
    const struct grpc_symbol_file *file = grpc_symbols_find(symbols, peg__str(name));

    return file ? file->file->name : "none";
}

#define CHECK_IN(symbols, name, file) CHECK_STR(peg__str(file_of(symbols, name)), file)

static const struct grpc_file *made_file(const char *bytes, size_t len)
{
    static struct grpc_file file;

    file = (struct grpc_file){.name = "made.proto", .bytes = (const uint8_t *)bytes, .len = len};
    return &file;
}

static void check_refused(const struct grpc_file *file, peg_status status, const char *code)
{
    struct grpc_symbols *symbols = NULL;
    peg_error error;

    CHECK_INT(grpc_symbols_new(&file, 1, &symbols, &error), status);
    CHECK_STR(peg__str(error.code), code);
    CHECK(!symbols);
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST(symbols_know_services_methods_messages_and_fields)
{
    struct grpc_symbols *symbols = symbols_of(&grpc_health_v1_health_proto);
    static const char file[] = "grpc/health/v1/health.proto";

    CHECK_IN(symbols, "grpc.health.v1.Health", file);
    CHECK_IN(symbols, "grpc.health.v1.Health.Watch", file);
    CHECK_IN(symbols, "grpc.health.v1.HealthCheckRequest", file);
    CHECK_IN(symbols, "grpc.health.v1.HealthCheckRequest.service", file);
    CHECK_IN(symbols, "grpc.health.v1.HealthListResponse.StatusesEntry.key", file);
    grpc_symbols_free(symbols);
}

TEST(symbols_know_what_is_nested_and_what_is_chosen)
{
    struct grpc_symbols *symbols = symbols_of(&pegboard_test_odd_proto);
    static const char file[] = "pegboard/test/odd.proto";

    CHECK_IN(symbols, "pegboard.test.Outer.Inner.Innermost", file);
    CHECK_IN(symbols, "pegboard.test.Outer.choice", file);
    CHECK_IN(symbols, "pegboard.test.Outer.colour", file);
    grpc_symbols_free(symbols);
}

TEST(symbols_name_the_values_of_an_enum_as_if_beside_it)
{
    struct grpc_symbols *symbols = symbols_of(&pegboard_test_odd_proto);
    static const char file[] = "pegboard/test/odd.proto";

    CHECK_IN(symbols, "pegboard.test.Shape", file);
    CHECK_IN(symbols, "pegboard.test.ROUND", file);
    CHECK_IN(symbols, "pegboard.test.Outer.Colour", file);
    CHECK_IN(symbols, "pegboard.test.Outer.GREEN", file);
    CHECK_IN(symbols, "pegboard.test.Outer.Colour.GREEN", "none");
    grpc_symbols_free(symbols);
}

TEST(symbols_do_not_know_parts_of_names)
{
    struct grpc_symbols *symbols = symbols_of(&grpc_health_v1_health_proto);

    CHECK_IN(symbols, "", "none");
    CHECK_IN(symbols, "grpc.health.v1", "none");
    CHECK_IN(symbols, ".grpc.health.v1.Health", "none");
    CHECK_IN(symbols, "grpc.health.v1.Health.", "none");
    CHECK_IN(symbols, "grpc.health.v1.Healt", "none");
    CHECK_IN(symbols, "Health", "none");
    grpc_symbols_free(symbols);
}

/* ---- files ----------------------------------------------------------------------------------- */

TEST(symbols_know_what_a_file_imports)
{
    struct grpc_symbols *symbols = symbols_of(&grpc_testing_test_proto);

    CHECK_IN(symbols, "grpc.testing.TestService.FullDuplexCall", "grpc/testing/test.proto");
    CHECK_IN(symbols, "grpc.testing.Empty", "grpc/testing/empty.proto");
    CHECK_IN(symbols, "grpc.testing.Payload.body", "grpc/testing/messages.proto");
    CHECK(grpc_symbols_file(symbols, peg__str("grpc/testing/empty.proto")) != NULL);
    CHECK(grpc_symbols_file(symbols, peg__str("empty.proto")) == NULL);
    grpc_symbols_free(symbols);
}

TEST(symbols_list_a_file_before_its_imports)
{
    struct grpc_symbols *symbols = symbols_of(&google_rpc_status_proto);
    const struct grpc_symbol_file *file =
        grpc_symbols_file(symbols, peg__str("google/rpc/status.proto"));

    CHECK_INT(file->n_with_imports, 2);
    CHECK(file->with_imports[0].data == google_rpc_status_proto.bytes);
    CHECK_INT(file->with_imports[0].len, google_rpc_status_proto.len);
    CHECK(file->with_imports[1].data == google_protobuf_any_proto.bytes);
    grpc_symbols_free(symbols);
}

TEST(symbols_list_an_import_of_two_files_once)
{
    static const struct grpc_file base = {.name = "base"};
    static const struct grpc_file *const base_list[] = {&base};
    static const struct grpc_file left = {.name = "left", .imports = base_list, .n_imports = 1};
    static const struct grpc_file right = {.name = "right", .imports = base_list, .n_imports = 1};
    static const struct grpc_file *const both[] = {&left, &right};
    static const struct grpc_file top = {.name = "top", .imports = both, .n_imports = 2};
    struct grpc_symbols *symbols = symbols_of(&top);

    CHECK_INT(grpc_symbols_file(symbols, peg__str("top"))->n_with_imports, 4);
    CHECK_INT(grpc_symbols_file(symbols, peg__str("left"))->n_with_imports, 2);
    CHECK_INT(grpc_symbols_file(symbols, peg__str("base"))->n_with_imports, 1);
    grpc_symbols_free(symbols);
}

TEST(symbols_take_a_file_twice)
{
    const struct grpc_file copy = grpc_health_v1_health_proto;
    const struct grpc_file *const files[] = {&grpc_health_v1_health_proto, &copy};
    struct grpc_symbols *symbols = NULL;

    CHECK_INT(grpc_symbols_new(files, 2, &symbols, NULL), PEG_OK);

    CHECK_IN(symbols, "grpc.health.v1.Health", "grpc/health/v1/health.proto");
    grpc_symbols_free(symbols);
}

TEST(symbols_refuse_two_files_of_one_name)
{
    struct grpc_file other = pegboard_test_echo_proto;
    const struct grpc_file *const files[] = {&grpc_health_v1_health_proto, &other};
    struct grpc_symbols *symbols = NULL;
    peg_error error;

    other.name = grpc_health_v1_health_proto.name;

    CHECK_INT(grpc_symbols_new(files, 2, &symbols, &error), PEG_EEXISTS);
    CHECK_STR(peg__str(error.code), "E_GRPC_SERVICE");
    CHECK(!symbols);
}

TEST(symbols_refuse_more_files_than_the_limit)
{
    static struct grpc_file files[PEG_LIMIT_GRPC_FILES + 1];
    static const struct grpc_file *list[PEG_LIMIT_GRPC_FILES + 1];
    static char names[PEG_LIMIT_GRPC_FILES + 1][8];
    struct grpc_symbols *symbols = NULL;
    peg_error error;

    for (int i = 0; i <= PEG_LIMIT_GRPC_FILES; i++) {
        snprintf(names[i], sizeof(names[i]), "%d", i);
        files[i] = (struct grpc_file){.name = names[i]};
        list[i] = &files[i];
    }

    CHECK_INT(grpc_symbols_new(list, PEG_LIMIT_GRPC_FILES + 1, &symbols, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "files"));
    CHECK_INT(grpc_symbols_new(list, PEG_LIMIT_GRPC_FILES, &symbols, &error), PEG_OK);
    grpc_symbols_free(symbols);
}

/* ---- extensions ------------------------------------------------------------------------------ */

TEST(symbols_know_extensions_by_type_and_number)
{
    struct grpc_symbols *symbols = symbols_of(&pegboard_test_odd_proto);
    const peg_str type = peg__str("pegboard.test.Outer");
    int32_t numbers[2] = {0};

    CHECK_IN(symbols, "pegboard.test.top_extension", "pegboard/test/odd.proto");
    CHECK_IN(symbols, "pegboard.test.Outer.nested_extension", "pegboard/test/odd.proto");
    CHECK(grpc_symbols_extension(symbols, type, 100) != NULL);
    CHECK(grpc_symbols_extension(symbols, type, 101) != NULL);
    CHECK(grpc_symbols_extension(symbols, type, 102) == NULL);
    CHECK(grpc_symbols_extension(symbols, peg__str("pegboard.test.Outer.Inner"), 100) == NULL);
    CHECK_INT(grpc_symbols_extension_numbers(symbols, type, numbers, 2), 2);
    CHECK_INT(numbers[0] + numbers[1], 201);
    CHECK_INT(grpc_symbols_extension_numbers(symbols, peg__str("none"), numbers, 2), 0);
    grpc_symbols_free(symbols);
}

/* ---- descriptors that are none --------------------------------------------------------------- */

TEST(symbols_refuse_bytes_that_are_cut_off)
{
    size_t n_refused = 0;

    for (size_t len = 1; len < grpc_health_v1_health_proto.len; len++) {
        struct grpc_file file = grpc_health_v1_health_proto;
        const struct grpc_file *list = &file;
        struct grpc_symbols *symbols = NULL;
        peg_status status;

        file.len = len;
        status = grpc_symbols_new(&list, 1, &symbols, NULL);
        CHECK(status == PEG_OK || status == PEG_EPARSE); /* a cut may lie between two fields */
        n_refused += status == PEG_EPARSE;
        grpc_symbols_free(symbols);
    }
    CHECK(n_refused > grpc_health_v1_health_proto.len - 20);
}

TEST(symbols_refuse_declarations_without_a_name)
{
    check_refused(made_file("\x22\x00", 2), PEG_EPARSE, "E_GRPC_SERVICE");
}

TEST(symbols_refuse_lengths_beyond_the_end)
{
    check_refused(made_file("\x22\x05\x0a\x01x", 5), PEG_EPARSE, "E_GRPC_SERVICE");
    check_refused(made_file("\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), PEG_EPARSE,
                  "E_GRPC_SERVICE");
}

TEST(symbols_refuse_numbers_without_an_end)
{
    check_refused(made_file("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12), PEG_EPARSE,
                  "E_GRPC_SERVICE");
    check_refused(made_file("\x08\xff", 2), PEG_EPARSE, "E_GRPC_SERVICE");
}

TEST(symbols_refuse_groups)
{
    check_refused(made_file("\x0b\x0c", 2), PEG_EPARSE, "E_GRPC_SERVICE");
}

/* Message "x" inside message "x" ..., as the file's number 4 and each message's number 3. */
static size_t nest(char *bytes, unsigned depth)
{
    size_t len = 0;

    for (unsigned i = 0; i < depth; i++) {
        const size_t inner = len + 3;

        memmove(bytes + 6, bytes, len);
        memcpy(bytes + 3, "\x0a\x01x", 3);
        bytes[0] = i + 1 == depth ? 0x22 : 0x1a;
        bytes[1] = (char)(inner | 0x80);
        bytes[2] = (char)(inner >> 7);
        len = inner + 3;
    }
    return len;
}

TEST(symbols_refuse_messages_too_deep_inside_each_other)
{
    char bytes[512];
    struct grpc_symbols *symbols = NULL;
    const struct grpc_file *file = made_file(bytes, nest(bytes, PEG_LIMIT_GRPC_NESTING));
    peg_error error;

    CHECK_STATUS(grpc_symbols_new(&file, 1, &symbols, &error), PEG_OK, error);
    CHECK_IN(symbols, "x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x",
             "made.proto");
    symbols = grpc_symbols_free(symbols);

    file = made_file(bytes, nest(bytes, PEG_LIMIT_GRPC_NESTING + 1));
    CHECK_INT(grpc_symbols_new(&file, 1, &symbols, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "levels of nesting"));
}

TORTURE(symbols_survive_any_allocation_failure)
{
    const struct grpc_file *const files[] = {&grpc_testing_test_proto, &pegboard_test_odd_proto};
    struct grpc_symbols *symbols = NULL;
    const peg_status status = grpc_symbols_new(files, 2, &symbols, NULL);

    grpc_symbols_free(symbols);
    return status;
}
