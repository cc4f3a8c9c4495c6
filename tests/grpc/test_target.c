/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/client/internal.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"

static void check_numbers(const char *text, const char *authority, const char *host,
                          const char *first)
{
    struct grpc_target target;
    struct net_address address;
    char formatted[NET_ADDRESS_TEXT];
    peg_error error;

    CHECK_STATUS(grpc_target_parse(peg__str(text), 443, &target, &error), PEG_OK, error);
    CHECK_INT(target.n, 1);
    CHECK(!target.entries[0].is_name);
    CHECK_STR(peg__str(target.entries[0].authority), authority);
    CHECK_STR(peg__str(target.entries[0].host), host);
    CHECK(net_endpoint_is_numeric(&target.entries[0].endpoint, &address));
    net_address_format(&address, formatted);
    CHECK_STR(peg__str(formatted), first);
    grpc_target_free(&target);
}

static void check_name(const char *text, const char *authority, const char *host, unsigned port)
{
    struct grpc_target target;
    peg_error error;

    CHECK_STATUS(grpc_target_parse(peg__str(text), 443, &target, &error), PEG_OK, error);
    CHECK_INT(target.n, 1);
    CHECK(target.entries[0].is_name);
    CHECK_STR(peg__str(target.entries[0].authority), authority);
    CHECK_STR(peg__str(target.entries[0].host), host);
    CHECK_INT(target.entries[0].endpoint.port, port);
    grpc_target_free(&target);
}

TEST(numbers_are_not_looked_up)
{
    check_numbers("127.0.0.1:9090", "127.0.0.1:9090", "127.0.0.1", "127.0.0.1:9090");
    check_numbers("[::1]:9090", "[::1]:9090", "::1", "[::1]:9090");
    check_numbers("localhost:9090", "localhost:9090", "localhost", "127.0.0.1:9090");
    check_numbers("dns:///127.0.0.1:1", "127.0.0.1:1", "127.0.0.1", "127.0.0.1:1");
}

TEST(names_are_looked_up)
{
    check_name("example.org:50051", "example.org:50051", "example.org", 50051);
    check_name("dns:example.org:50051", "example.org:50051", "example.org", 50051);
    check_name("dns:///example.org:50051", "example.org:50051", "example.org", 50051);
}

TEST(a_missing_port_is_the_default_one_and_stays_out_of_the_authority)
{
    check_name("example.org", "example.org", "example.org", 443);
    check_name("dns:///example.org", "example.org", "example.org", 443);
    check_numbers("127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1:443");
    check_numbers("[::1]", "[::1]", "::1", "[::1]:443");
}

TEST(a_unix_socket_is_localhost)
{
    check_numbers("unix:/run/x.sock", "localhost", "localhost", "unix:/run/x.sock");
    check_numbers("unix:@abstract", "localhost", "localhost", "unix:@abstract");
}

TEST(every_interface_is_localhost_for_who_calls)
{
    check_numbers(":9090", "localhost:9090", "localhost", "127.0.0.1:9090");
}

TEST(a_list_of_numbers_names_a_server_for_each)
{
    struct grpc_target target;

    CHECK_INT(grpc_target_parse(peg__str("ipv4:10.0.0.1:1,10.0.0.2:1"), 443, &target, NULL),
              PEG_OK);

    CHECK_INT(target.n, 2);
    CHECK_STR(peg__str(target.entries[0].authority), "10.0.0.1:1");
    CHECK_STR(peg__str(target.entries[0].host), "10.0.0.1");
    CHECK_STR(peg__str(target.entries[1].authority), "10.0.0.2:1");
    grpc_target_free(&target);
}

TEST(a_list_may_have_names_numbers_and_sockets)
{
    struct grpc_target target;
    peg_error error;

    CHECK_STATUS(
        grpc_target_parse(peg__str("one.example:1,dns:///two.example,10.0.0.3:3,:4,unix:/s"), 443,
                          &target, &error),
        PEG_OK, error);

    CHECK_INT(target.n, 5);
    CHECK(target.entries[0].is_name);
    CHECK_STR(peg__str(target.entries[0].host), "one.example");
    CHECK_STR(peg__str(target.entries[1].authority), "two.example");
    CHECK_INT(target.entries[1].endpoint.port, 443);
    CHECK(!target.entries[2].is_name);
    CHECK_STR(peg__str(target.entries[3].authority), "localhost:4");
    CHECK(target.entries[4].endpoint.is_unix);
    grpc_target_free(&target);
}

TEST(a_bad_address_of_a_list_is_named_by_its_place)
{
    static const struct {
        const char *text;
        const char *words;
    } bad[] = {
        {"a:1,b:x", "the 2nd address: 'b:x' is not an address: a port is a number"},
        {"a:1,", "the 2nd address: '' is not an address"},
        {",a:1", "the 1st address: '' is not an address"},
        {"a:1,b:1,c:0", "the 3rd address: port 0 cannot be reached"},
        {"a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a:1,a b:1", "the 11th address: 'a?b:1'"},
    };
    struct grpc_target target;
    peg_error error;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_INT(grpc_target_parse(peg__str(bad[i].text), 443, &target, &error), PEG_EPARSE);
        CHECK_STR(peg__str(error.code), "E_ADDRESS");
        CHECK(strstr(error.message, bad[i].words));
    }
}

TEST(a_list_has_a_limit)
{
    char text[PEG_LIMIT_NET_ADDRESSES * 4 + 4] = "a:1";
    struct grpc_target target;
    peg_error error;

    for (unsigned i = 1; i < PEG_LIMIT_NET_ADDRESSES; i++)
        memcpy(text + strlen(text), ",a:1", 5);
    CHECK_INT(grpc_target_parse(peg__str(text), 443, &target, NULL), PEG_OK);
    grpc_target_free(&target);
    memcpy(text + strlen(text), ",a:1", 5);
    CHECK_INT(grpc_target_parse(peg__str(text), 443, &target, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "more than 64 addresses"));
}

TEST(what_is_no_target_is_refused)
{
    static const char *const bad[] = {
        "",       "dns:",          "dns:///", "host:port", "host:99999", "unix:",
        "ipv4:a", "127.0.0.1:0",   "a b",     "[::1",      "ipv4:",      "dns://8.8.8.8/host",
        "::1",    "ipv6:1.2.3.4:1"};
    struct grpc_target target;
    peg_error error;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_INT(grpc_target_parse(peg__str(bad[i]), 443, &target, &error), PEG_EPARSE);
        CHECK_STR(peg__str(error.code), "E_ADDRESS");
    }
}

TEST(a_name_that_is_too_long_is_refused)
{
    char name[300];
    struct grpc_target target;

    memset(name, 'a', sizeof(name));
    CHECK_INT(grpc_target_parse((peg_str){name, sizeof(name)}, 443, &target, NULL), PEG_EPARSE);
    CHECK_INT(grpc_target_parse((peg_str){name, NET_HOST_BYTES}, 443, &target, NULL), PEG_EPARSE);
    CHECK_INT(grpc_target_parse((peg_str){name, NET_HOST_BYTES - 1}, 443, &target, NULL), PEG_OK);
    CHECK_INT(strlen(target.entries[0].authority), NET_HOST_BYTES - 1);
    grpc_target_free(&target);
}

TORTURE(parsing_a_list_survives_any_allocation_failure)
{
    struct grpc_target target;
    const peg_status status = grpc_target_parse(peg__str("a:1,10.0.0.2:1"), 443, &target, NULL);

    if (!status)
        grpc_target_free(&target);
    return status;
}

TORTURE(parsing_survives_any_allocation_failure)
{
    struct grpc_target target;
    const peg_status status =
        grpc_target_parse(peg__str("ipv4:10.0.0.1:1,10.0.0.2:1"), 443, &target, NULL);

    if (!status)
        grpc_target_free(&target);
    return status;
}
