/* SPDX-License-Identifier: Apache-2.0 */

#include "net/address.h"

#include <arpa/inet.h>
#include <stddef.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "t.h"

static struct net_address address_of(const char *text)
{
    struct net_endpoint endpoint;
    struct net_address address;
    peg_error error;

    CHECK_STATUS(net_endpoint_parse(peg__str(text), &endpoint, &error), PEG_OK, error);
    CHECK(net_endpoint_is_numeric(&endpoint, &address));
    return address;
}

static void check_text(const char *text, const char *expected)
{
    const struct net_address address = address_of(text);
    char formatted[NET_ADDRESS_TEXT];

    net_address_format(&address, formatted);
    CHECK_STR(peg__str(formatted), expected);
}

static void check_refused(peg_str text)
{
    struct net_endpoint endpoint = {.port = 7};
    peg_error error;

    if (net_endpoint_parse(text, &endpoint, &error) != PEG_EPARSE)
        T_FAIL("'%.*s' was taken", PEG_ARG(text));
    CHECK_STR(peg__str(error.code), "E_ADDRESS");
    CHECK(strstr(error.message, "write host:port"));
    CHECK_INT(endpoint.port, 7);
}

TEST(numbers_are_read_and_written_the_same)
{
    check_text("127.0.0.1:9090", "127.0.0.1:9090");
    check_text("0.0.0.0:0", "0.0.0.0:0");
    check_text("[::1]:65535", "[::1]:65535");
    check_text("[2001:DB8::0:1]:80", "[2001:db8::1]:80");
    check_text("[fe80::1%1]:80", "[fe80::1%1]:80");
    check_text("[fe80::1%lo]:80", "[fe80::1%1]:80");
}

TEST(localhost_needs_no_lookup)
{
    check_text("localhost:1", "127.0.0.1:1");
    check_text("LocalHost:1", "127.0.0.1:1");
    check_text("dns:localhost:1", "127.0.0.1:1");
    check_text("dns:///localhost:1", "127.0.0.1:1");
}

TEST(no_host_means_every_interface)
{
    check_text(":9090", "[::]:9090");
}

TEST(unix_sockets_have_a_path_or_an_abstract_name)
{
    check_text("unix:/run/x.sock", "unix:/run/x.sock");
    check_text("unix:x.sock", "unix:x.sock");
    check_text("unix:///run/x.sock", "unix:/run/x.sock");
    check_text("unix:@name", "unix:@name");
    check_text("unix-abstract:name", "unix:@name");
}

TEST(an_abstract_name_ends_with_the_length)
{
    const struct net_address address = address_of("unix:@name");

    CHECK_INT(address.len, offsetof(struct sockaddr_un, sun_path) + 5);
    CHECK(memcmp(address.at.unix_path.sun_path, "\0name", 5) == 0);
}

TEST(a_path_of_107_bytes_is_the_longest)
{
    char text[5 + 108 + 1] = "unix:";

    memset(text + 5, 'x', 107);
    check_text(text, text);
    text[5 + 107] = 'x';
    text[5 + 108] = '\0';
    check_refused(peg__str(text));
}

TEST(a_name_has_to_be_looked_up)
{
    struct net_endpoint endpoint;
    struct net_address address;
    peg_error error;

    CHECK_STATUS(net_endpoint_parse(peg__str("dns:///a-b_c.example.org:443"), &endpoint, &error),
                 PEG_OK, error);

    CHECK_STR(peg__str(endpoint.host), "a-b_c.example.org");
    CHECK_INT(endpoint.port, 443);
    CHECK(!endpoint.is_unix);
    CHECK(!net_endpoint_is_numeric(&endpoint, &address));
}

TEST(a_port_alone_is_not_said_to_lack_one)
{
    struct net_endpoint endpoint;
    peg_error error;

    CHECK_INT(net_endpoint_parse(peg__str("9090"), &endpoint, &error), PEG_EPARSE);
    CHECK(strstr(error.message, "'9090' is not an address: a port alone stands behind a colon"));
    CHECK_INT(net_endpoint_parse(peg__str("localhost"), &endpoint, &error), PEG_EPARSE);
    CHECK(strstr(error.message, "'localhost' is not an address: the port is missing"));
}

TEST(what_is_no_address_is_refused)
{
    static const char *const texts[] = {
        "",
        "localhost",
        "localhost:",
        "localhost:x",
        "localhost:65536",
        ":",
        ":-1",
        ":+1",
        ": 1",
        "localhost:000080",
        "[::1]",
        "[::1]9090",
        "[::1:9090",
        "[localhost]:1",
        "::1:9090",
        "[]:1",
        "[fe80::%]:1",
        "[fe80::1%nope]:1",
        "1.2.3:1",
        "1.2.3.4.5:1",
        "256.1.1.1:",
        "0x7f.1:1",
        "300.1.1.1:1",
        "a b:1",
        "a..b:1",
        ".a:1",
        "a/b:1",
        "\xc3\xa4.org:1",
        "unix:",
        "unix:@",
        "unix://",
        "unix://x",
        "unix-abstract:",
        "dns://8.8.8.8/x",
        "dns:",
        "http://a:1",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        check_refused(peg__str(texts[i]));
}

TEST(nul_bytes_are_refused)
{
    check_refused(peg__strn("loc\0alhost:1", 12));
    check_refused(peg__strn("unix:a\0b", 8));
    check_refused(peg__strn("[::1\0]:1", 8));
    check_refused(peg__strn("a:1\0", 4));
}

TEST(a_name_of_253_bytes_is_the_longest)
{
    char text[254 + 2 + 1];
    struct net_endpoint endpoint;
    peg_error error;

    memset(text, 'x', 254);
    memcpy(text + 253, ":1", 3);
    CHECK_STATUS(net_endpoint_parse(peg__str(text), &endpoint, &error), PEG_OK, error);
    CHECK_INT(strlen(endpoint.host), 253);
    memcpy(text + 253, "x:1", 4);
    check_refused(peg__str(text));
}

TEST(an_error_shows_harmless_bytes_only)
{
    struct net_endpoint endpoint;
    peg_error error;

    CHECK_INT(net_endpoint_parse(peg__str("a\n\x1b[2J"), &endpoint, &error), PEG_EPARSE);
    CHECK(strstr(error.message, "'a??[2J' is not an address"));
}

/* ---- targets ------------------------------------------------------------------------------ */

TEST(a_target_may_list_addresses)
{
    struct net_endpoint endpoints[PEG_LIMIT_NET_ADDRESSES];
    peg_error error;
    size_t n = 0;

    CHECK_STATUS(net_target_parse(peg__str("ipv4:10.0.0.1:1,10.0.0.2:2"), endpoints,
                                  PEG_LIMIT_NET_ADDRESSES, &n, &error),
                 PEG_OK, error);
    CHECK_INT(n, 2);
    CHECK_STR(peg__str(endpoints[1].host), "10.0.0.2");
    CHECK_INT(endpoints[1].port, 2);

    CHECK_STATUS(
        net_target_parse(peg__str("ipv6:[::1]:1"), endpoints, PEG_LIMIT_NET_ADDRESSES, &n, &error),
        PEG_OK, error);
    CHECK_INT(n, 1);
    CHECK_STR(peg__str(endpoints[0].host), "::1");
}

TEST(a_target_may_be_an_endpoint)
{
    struct net_endpoint endpoint;
    peg_error error;
    size_t n = 0;

    CHECK_STATUS(net_target_parse(peg__str("unix:x"), &endpoint, 1, &n, &error), PEG_OK, error);
    CHECK_INT(n, 1);
    CHECK(endpoint.is_unix);
}

TEST(a_list_has_addresses_of_its_kind_only)
{
    static const char *const texts[] = {
        "ipv4:",           "ipv4:10.0.0.1:1,", "ipv4:example.org:1",     "ipv4:[::1]:1", "ipv4::1",
        "ipv6:10.0.0.1:1", "ipv6:[::1]:1,,",   "ipv4:10.0.0.1:1,unix:x", "nope",
    };
    struct net_endpoint endpoints[4];
    size_t n = 9;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK_INT(net_target_parse(peg__str(texts[i]), endpoints, 4, &n, NULL), PEG_EPARSE);
    CHECK_INT(n, 9);
}

TEST(a_list_has_a_limit)
{
    struct net_endpoint endpoints[2];
    peg_error error;
    size_t n = 9;

    CHECK_INT(
        net_target_parse(peg__str("ipv4:1.1.1.1:1,1.1.1.2:1,1.1.1.3:1"), endpoints, 2, &n, &error),
        PEG_ELIMIT);
    CHECK(strstr(error.message, "addresses"));
    CHECK_INT(n, 9);
}

/* ---- addresses ---------------------------------------------------------------------------- */

TEST(addresses_are_equal_when_all_of_them_is)
{
    static const char *const texts[] = {
        "127.0.0.1:1",   "127.0.0.1:2",   "127.0.0.2:1", "[::1]:1", "[::1]:2", "[::2]:1",
        "[fe80::1%1]:1", "[fe80::1%2]:1", "unix:a",      "unix:b",  "unix:@a", "unix-abstract:b"};
    const size_t n = sizeof(texts) / sizeof(texts[0]);

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const struct net_address a = address_of(texts[i]);
            const struct net_address b = address_of(texts[j]);

            if (net_address_eq(&a, &b) != (i == j))
                T_FAIL("%s and %s", texts[i], texts[j]);
        }
}

TEST(loopback_and_unix_are_local)
{
    static const char *const local[] = {"127.0.0.1:1",          "127.9.9.9:1", "[::1]:1",
                                        "[::ffff:127.0.0.1]:1", "unix:a",      "unix:@a"};
    static const char *const remote[] = {"128.0.0.1:1", "10.0.0.1:1", "[::2]:1",
                                         "[::ffff:10.0.0.1]:1", "0.0.0.0:1"};

    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
        const struct net_address address = address_of(local[i]);

        CHECK(net_address_is_local(&address));
    }
    for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++) {
        const struct net_address address = address_of(remote[i]);

        CHECK(!net_address_is_local(&address));
    }
}

TEST(a_mapped_address_is_written_as_ipv4)
{
    check_text("[::ffff:10.1.2.3]:5", "10.1.2.3:5");
}

/* Whoever connects chooses the name of its own end, and the text is logged. */
TEST(strange_bytes_in_the_name_of_a_unix_socket_are_not_shown)
{
    check_text("unix:/run/a\nE: \x1b[31mb\x7f.sock", "unix:/run/a?E: ?[31mb?.sock");
    check_text("unix:@a\r\nb", "unix:@a??b");
    check_text("unix:/run/gr\xC3\xBC\xC3\x9F.sock", "unix:/run/gr\xC3\xBC\xC3\x9F.sock");
    check_text("unix:/run/gr\xFC\xDF.sock", "unix:/run/gr??.sock");
}

TEST(a_nul_byte_in_an_abstract_name_hides_nothing)
{
    struct net_address address = {.len = offsetof(struct sockaddr_un, sun_path) + 4};
    char text[NET_ADDRESS_TEXT];

    address.at.any.sa_family = AF_UNIX;
    memcpy(address.at.unix_path.sun_path, "\0a\0b", 4);
    net_address_format(&address, text);
    CHECK_STR(peg__str(text), "unix:@a?b");
}

/* The kernel says so of a path that fills all there is. */
TEST(a_path_without_room_for_its_end_is_not_read_beyond)
{
    struct net_address address;
    char text[NET_ADDRESS_TEXT];

    memset(&address, 'a', sizeof(address));
    address.at.any.sa_family = AF_UNIX;
    address.len = sizeof(struct sockaddr_un) + 1;
    net_address_format(&address, text);
    CHECK_INT(strlen(text), strlen("unix:") + sizeof(address.at.unix_path.sun_path));
}

TEST(the_nameless_end_of_a_unix_socket_has_a_text)
{
    struct net_address address = {.len = sizeof(sa_family_t)};
    char text[NET_ADDRESS_TEXT];

    address.at.any.sa_family = AF_UNIX;
    net_address_format(&address, text);
    CHECK_STR(peg__str(text), "unix:");
}
