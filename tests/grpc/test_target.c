/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/client/internal.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"

static void check_numbers(const char *text, const char *authority, const char *host,
                          const char *first)
{
    struct grpc_target target;
    char formatted[NET_ADDRESS_TEXT];
    peg_error error;

    CHECK_STATUS(grpc_target_parse(peg__str(text), 443, &target, &error), PEG_OK, error);
    CHECK(!target.is_name);
    CHECK(target.n_numbers > 0);
    CHECK_STR(peg__str(target.authority), authority);
    CHECK_STR(peg__str(target.host), host);
    net_address_format(&target.numbers[0], formatted);
    CHECK_STR(peg__str(formatted), first);
    grpc_target_free(&target);
}

static void check_name(const char *text, const char *authority, const char *host, unsigned port)
{
    struct grpc_target target;
    peg_error error;

    CHECK_STATUS(grpc_target_parse(peg__str(text), 443, &target, &error), PEG_OK, error);
    CHECK(target.is_name);
    CHECK_STR(peg__str(target.authority), authority);
    CHECK_STR(peg__str(target.host), host);
    CHECK_INT(target.name.port, port);
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

TEST(a_list_has_each_address_once)
{
    struct grpc_target target;

    CHECK_INT(grpc_target_parse(peg__str("ipv4:10.0.0.1:1,10.0.0.2:1,10.0.0.1:1,10.0.0.1:2"), 443,
                                &target, NULL),
              PEG_OK);

    CHECK_INT(target.n_numbers, 3);
    CHECK_STR(peg__str(target.authority), "10.0.0.1:1");
    CHECK_STR(peg__str(target.host), "10.0.0.1");
    grpc_target_free(&target);
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
    CHECK_INT(strlen(target.authority), NET_HOST_BYTES - 1);
    grpc_target_free(&target);
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
