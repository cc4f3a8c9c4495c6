/* SPDX-License-Identifier: Apache-2.0 */

/* In libpegboard-engine, as http.c: which addresses a name from outside may not lead to. */

#include "engine/transport/transport.h"

#include <netinet/in.h>
#include <string.h>

#include "base/text/str.h"

struct range {
    unsigned char start[4];
    unsigned bits;
};

/* Of IANA's list of special addresses those that lead to this machine, to a network of ours, or to
 * several receivers. */
static const struct range ranges[] = {
    {{0, 0, 0, 0}, 8},      {{10, 0, 0, 0}, 8},    {{100, 64, 0, 0}, 10}, {{127, 0, 0, 0}, 8},
    {{169, 254, 0, 0}, 16}, {{172, 16, 0, 0}, 12}, {{192, 0, 0, 0}, 24},  {{192, 168, 0, 0}, 16},
    {{198, 18, 0, 0}, 15},  {{224, 0, 0, 0}, 3},
};

static uint32_t read_ipv4(const unsigned char bytes[4])
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static bool is_private_v4(const unsigned char address[4])
{
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        const unsigned rest = 32 - ranges[i].bits;

        if (read_ipv4(address) >> rest == read_ipv4(ranges[i].start) >> rest)
            return true;
    }
    return false;
}

/* Only 2000::/3 is handed out; what carries an address of IPv4 is judged by that. */
static bool is_private_v6(const unsigned char address[16])
{
    static const unsigned char mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    static const unsigned char nat64[12] = {0x00, 0x64, 0xFF, 0x9B};
    static const unsigned char six_to_four[2] = {0x20, 0x02};

    if (!memcmp(address, mapped, sizeof(mapped)) || !memcmp(address, nat64, sizeof(nat64)))
        return is_private_v4(address + 12);
    if (!memcmp(address, six_to_four, sizeof(six_to_four)))
        return is_private_v4(address + 2);
    return address[0] >> 5 != 1;
}

bool peg__address_is_private(const struct sockaddr *address)
{
    unsigned char bytes[16];

    if (address->sa_family == AF_INET) {
        memcpy(bytes, &((const struct sockaddr_in *)address)->sin_addr, 4);
        return is_private_v4(bytes);
    }
    if (address->sa_family == AF_INET6) {
        memcpy(bytes, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
        return is_private_v6(bytes);
    }
    return true;
}
