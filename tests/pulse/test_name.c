/* SPDX-License-Identifier: Apache-2.0 */

/* The names are those of the captures in ../shared/data/goa-capture, letter by letter. */

#include "pulse/pulse.h"

#include "../t.h"
#include "base/text/str.h"

TEST(streams_have_the_names_that_the_captures_show)
{
    char text[PULSE_NAME];

    CHECK_STR(pulse_request_stream(peg_cstr("bench.echo"), text), "toolset:bench.echo:requests");
    CHECK_STR(pulse_result_stream(peg_cstr("3b6dca71"), text), "result:3b6dca71");
    CHECK_STR(pulse_request_key(peg_cstr("bench.echo"), text),
              "pulse:stream:toolset:bench.echo:requests");
    CHECK_STR(pulse_result_key(peg_cstr("3b6dca71"), text), "pulse:stream:result:3b6dca71");
    CHECK_STR(pulse_stream_key(peg_cstr("result:3b6dca71"), text), "pulse:stream:result:3b6dca71");
    CHECK_STR(pulse_mapping_key(peg_cstr("3b6dca71"), text), "registry:result-stream:3b6dca71");
}

TEST(maps_have_the_names_that_the_captures_show)
{
    char text[PULSE_NAME];
    const peg_str stream = peg_cstr("toolset:bench.echo:requests");

    CHECK_STR(pulse_sinks_key(stream, text),
              "map:stream:toolset:bench.echo:requests:sinks:content");
    CHECK_STR(pulse_sinks_channel(stream, text),
              "map:stream:toolset:bench.echo:requests:sinks:updates");
    CHECK_STR(pulse_keepalive_key(peg_cstr(PULSE_PROVIDERS), text),
              "map:sink:provider:keepalive:content");
    CHECK_STR(pulse_keepalive_channel(peg_cstr(PULSE_PROVIDERS), text),
              "map:sink:provider:keepalive:updates");
    CHECK_STR(pulse_stale_lease_key(peg_cstr(PULSE_PROVIDERS), text), "sink:provider:stalelease");
}

TEST(names_that_pulse_refuses_make_no_key)
{
    char text[PULSE_NAME];

    CHECK_INT(pulse_request_key(peg_cstr(""), text).len, 0);
    CHECK_INT(pulse_request_key(peg_cstr("a b"), text).len, 0);
    CHECK_INT(pulse_result_key(peg_cstr("a*"), text).len, 0);
    CHECK_INT(pulse_result_key(peg_cstr("a?"), text).len, 0);
    CHECK_INT(pulse_result_key(peg_cstr("[a"), text).len, 0);
    CHECK_INT(pulse_result_key(peg_cstr("a]"), text).len, 0);
    CHECK_INT(pulse_result_key((peg_str){"a\0b", 3}, text).len, 0);
    CHECK(text[0] == '\0');
}

TEST(the_longest_stream_fits_every_key_and_no_longer_one_is_a_stream)
{
    char id[513];
    char text[PULSE_NAME];

    memset(id, 'x', sizeof(id));
    CHECK(pulse_is_stream(peg__strn(id, 512)));
    CHECK(!pulse_is_stream(peg__strn(id, 513)));
    CHECK_INT(pulse_sinks_key(peg__strn(id, 512), text).len, 512 + 25);
    CHECK_INT(pulse_keepalive_channel(peg__strn(id, 512), text).len, 512 + 27);
    CHECK_INT(pulse_mapping_key(peg__strn(id, 512), text).len, 512 + 23);
    CHECK_INT(pulse_request_key(peg__strn(id, 512), text).len, 512 + 30);
    CHECK_INT(pulse_stream_key(peg__strn(id, 513), text).len, 0);
}

TEST(a_key_of_a_result_leads_back_to_its_call)
{
    peg_str id = {NULL, 0};

    CHECK(pulse_result_of_key(peg_cstr("pulse:stream:result:3b6dca71"), &id));
    CHECK_STR(id, "3b6dca71");
    CHECK(pulse_result_of_sinks_key(peg_cstr("map:stream:result:7ab3:sinks:content"), &id));
    CHECK_STR(id, "7ab3");
}

TEST(other_keys_lead_to_no_call)
{
    peg_str id;

    CHECK(!pulse_result_of_key(peg_cstr("pulse:stream:toolset:a:requests"), &id));
    CHECK(!pulse_result_of_key(peg_cstr("pulse:stream:result:"), &id));
    CHECK(!pulse_result_of_sinks_key(peg_cstr("map:stream:registry:pool:sinks:content"), &id));
    CHECK(!pulse_result_of_sinks_key(peg_cstr("map:stream:result:7ab3:sinks:updates"), &id));
    CHECK(!pulse_result_of_sinks_key(peg_cstr("map:stream:result:sinks:content"), &id));
}
