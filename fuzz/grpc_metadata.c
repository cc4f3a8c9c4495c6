/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: lines "name: value" of a block of headers. What a head and its metadata hold must be as
 * their contracts say. Each value is also taken for a grpc-message, a timeout, and for what a
 * program adds.
 */

#include "base/text/base64.h"
#include "base/text/str.h"
#include "fuzz.h"
#include "grpc/http2/http2.h"
#include "grpc/status.h"

enum { MAX_BYTES = 4096 };

static bool is_printable(peg_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < 0x20 || text.ptr[i] > 0x7e)
            return false;
    return true;
}

static void check_metadata(const struct grpc_metadata *metadata)
{
    size_t bytes = 0;

    for (size_t i = 0; i < metadata->n; i++) {
        const struct grpc_metadata_entry *entry = &metadata->entries[i];

        REQUIRE(grpc_metadata_is_ours(entry->key), "'%s' is the protocol's", entry->key.ptr);
        REQUIRE(entry->key.ptr[entry->key.len] == '\0', "a key ends with NUL");
        bytes += entry->key.len + entry->value.len + 32;
        if (grpc_metadata_is_binary(entry->key))
            continue;
        REQUIRE(is_printable(entry->value), "the value of '%s'", entry->key.ptr);
        REQUIRE(entry->value.ptr[entry->value.len] == '\0', "a text ends with NUL");
    }
    REQUIRE(bytes == metadata->bytes, "%zu bytes are %zu", metadata->bytes, bytes);
}

static void check_head(const struct grpc_head *head)
{
    REQUIRE(head->n_bytes <= MAX_BYTES, "%zu bytes", head->n_bytes);
    REQUIRE(head->arena->held <= 64 * MAX_BYTES, "%zu bytes of memory", head->arena->held);
    REQUIRE(head->timeout_ns >= -1 && (head->timeout_ns == -1 || !head->has_bad_timeout),
            "the timeout is one or none");
    REQUIRE((unsigned)head->code <= 16, "code %d", head->code);
    REQUIRE(peg__utf8_is_valid(head->message), "a message is UTF-8");
    REQUIRE(head->http_status >= 0 && head->http_status <= 999, "status %d", head->http_status);
    REQUIRE((head->encoding != GRPC_IDENTITY) <= (head->encoding_name.ptr != NULL),
            "an encoding has a name");
    check_metadata(&head->metadata);
}

static void check_percent(peg_str value)
{
    char *encoded = malloc(3 * value.len + 1);
    char *decoded = malloc(9 * value.len + 1);
    const peg_str text = fuzz_utf8(value);
    size_t len;

    REQUIRE(encoded && decoded, "memory");
    len = grpc_percent_encode(text, encoded);
    REQUIRE(len <= 3 * text.len && is_printable(peg__strn(encoded, len)), "it can be sent");
    len = grpc_percent_decode(peg__strn(encoded, len), decoded);
    REQUIRE(peg__str_eq(peg__strn(decoded, len), text), "it comes back");
    len = grpc_percent_decode(value, decoded);
    REQUIRE(len <= 3 * value.len && peg__utf8_is_valid(peg__strn(decoded, len)),
            "what is decoded is UTF-8");
    free(encoded);
    free(decoded);
    fuzz_free(text);
}

static void check_timeout(peg_str value)
{
    char text[GRPC_TIMEOUT_TEXT];
    int64_t ns = -1;
    int64_t again = -1;
    size_t len;

    if (!grpc_timeout_parse(value, &ns))
        return;
    REQUIRE(ns >= 0, "a timeout is not negative");
    len = grpc_timeout_format(ns, text);
    REQUIRE(grpc_timeout_parse(peg__strn(text, len), &again) && again >= ns, "it is not shorter");
}

/* What a program may add, it finds again, also after a way over the wire. */
static void check_added(peg_str key, peg_str value)
{
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    struct grpc_metadata received = {0};
    peg_error error;
    char *text = malloc(peg__base64_len(value.len) + 1);

    REQUIRE(text, "memory");
    if (grpc_metadata_add(&metadata, &arena, key, value, &error) == PEG_OK) {
        const struct grpc_metadata_entry *entry = metadata.entries;
        peg_str wire = entry->value;

        check_metadata(&metadata);
        REQUIRE(peg__str_eq(grpc_metadata_get(&metadata, entry->key.ptr), wire), "it is found");
        if (grpc_metadata_is_binary(entry->key))
            wire = peg__strn(text, grpc_metadata_encode_bin(wire, text));
        REQUIRE(grpc_metadata_add_wire(&received, &arena, entry->key, wire, &error) == PEG_OK, "%s",
                error.message);
        REQUIRE(received.n == 1 && peg__str_eq(received.entries[0].value, entry->value),
                "it is received");
    } else {
        REQUIRE(error.message[0] != '\0' && metadata.n == 0, "a refusal says why");
    }
    free(text);
    peg__arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str rest = fuzz_input(data, size);
    struct peg__arena arena = {0};
    struct grpc_head head;

    grpc_head_init(&head, &arena, MAX_BYTES);
    while (rest.len) {
        const peg_str line = fuzz_line(&rest);
        const char *sign = line.len > 1 ? memchr(line.ptr + 1, ':', line.len - 1) : NULL;
        const peg_str name = {line.ptr, sign ? (size_t)(sign - line.ptr) : line.len};
        peg_str value = peg__str_from(line, sign ? name.len + 1 : name.len);
        peg_error error;

        if (value.len && value.ptr[0] == ' ')
            value = peg__str_from(value, 1);
        if (grpc_head_add(&head, name, value, &error) != PEG_OK)
            fuzz_check_error(&error, line);
        check_head(&head);
        check_percent(value);
        check_timeout(value);
        check_added(name, value);
    }
    (void)grpc_head_is_grpc(&head);
    peg__arena_free(&arena);
    return 0;
}
