/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/event.h"

#include "../t.h"

TEST(each_kind_of_event_has_a_name_of_its_own)
{
    for (int i = 0; i < PEG_N_EVENT_KINDS; i++) {
        const char *name = peg_event_name((peg_event_kind)i);

        CHECK(*name && strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name));
        for (int other = 0; other < i; other++)
            CHECK(strcmp(name, peg_event_name((peg_event_kind)other)) != 0);
    }
    CHECK_STR(peg_cstr(peg_event_name(PEG_EVENT_TURN_START)), "turn_start");
    CHECK_STR(peg_cstr(peg_event_name(PEG_EVENT_GATE_CLOSED)), "gate_closed");
}

TEST(kind_of_event_that_does_not_exist_is_unknown)
{
    CHECK_STR(peg_cstr(peg_event_name(PEG_N_EVENT_KINDS)), "unknown");
    CHECK_STR(peg_cstr(peg_event_name((peg_event_kind)-1)), "unknown");
}

TEST(only_messages_thoughts_and_tool_calls_are_functional)
{
    for (int i = 0; i < PEG_N_EVENT_KINDS; i++)
        CHECK(peg_event_is_functional((peg_event_kind)i) == (i < 3));
}

TEST(ends_have_names)
{
    CHECK_STR(peg_cstr(peg_turn_end_name(PEG_END_ACK)), "ack");
    CHECK_STR(peg_cstr(peg_turn_end_name(PEG_END_NACK)), "nack");
    CHECK_STR(peg_cstr(peg_turn_end_name(PEG_END_ABORTED)), "aborted");
    CHECK_STR(peg_cstr(peg_turn_end_name((peg_turn_end)17)), "unknown");
}
