/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: a line, the name of an event, and the payload of an entry. What can be read is written
 * and read again: it is the same entry, and its text the same text. The line as a stream's name
 * comes back out of its keys.
 */

#include "pulse/pulse.h"
#include "fuzz.h"

enum { MAX_WRITTEN = 1 << 26 };

static void check_json(peg_str json)
{
    if (json.len)
        peg_json_doc_free(fuzz_parse_own(json.ptr, json.len));
}

static void check_inner(const struct pulse_entry *entry)
{
    if (entry->event == PULSE_CALL)
        check_json(entry->call.payload);
    if (entry->event != PULSE_RESULT)
        return;
    check_json(entry->result.json);
    check_json(entry->result.server_data);
    check_json(entry->result.bounds);
    check_json(entry->result.issues);
    REQUIRE(entry->result.is_failure || entry->result.json.len, "a result has a value");
}

static void check_again(const struct pulse_entry *entry)
{
    const peg_str name = peg__str(pulse_event_name(entry->event));
    struct peg__buf first = PEG__BUF(MAX_WRITTEN);
    struct peg__buf second = PEG__BUF(MAX_WRITTEN);
    struct pulse_entry again = {0};

    pulse_entry_write(entry, &first);
    REQUIRE(first.status == PEG_OK, "it can be written");
    REQUIRE(pulse_entry_read(name, peg__buf_view(&first), &again, NULL) == PEG_OK,
            "and read again: %.200s", first.ptr);
    REQUIRE(again.event == entry->event, "as the same event");
    pulse_entry_write(&again, &second);
    REQUIRE(peg__str_eq(peg__buf_view(&first), peg__buf_view(&second)), "and is the same");
    pulse_entry_free(&again);
    peg__buf_free(&first);
    peg__buf_free(&second);
}

static void check_names(peg_str id)
{
    char text[PULSE_NAME];
    peg_str found = {NULL, 0};
    const peg_str key = pulse_result_key(id, text);

    REQUIRE(pulse_is_stream(id) == (key.len > 0), "a key is made of names");
    REQUIRE(!key.len || (pulse_result_of_key(key, &found) && peg__str_eq(found, id)),
            "a key leads back");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str rest = fuzz_input(data, size);
    const peg_str name = fuzz_line(&rest);
    struct pulse_entry entry = {0};
    peg_error error;

    check_names(name);
    if (pulse_entry_read(name, rest, &entry, &error)) {
        fuzz_check_error(&error, rest);
        return 0;
    }
    if (entry.event != PULSE_UNKNOWN) {
        check_inner(&entry);
        check_again(&entry);
    }
    pulse_entry_free(&entry);
    return 0;
}
