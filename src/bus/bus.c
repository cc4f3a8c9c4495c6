/* SPDX-License-Identifier: Apache-2.0 */

/* What is alike for every kind of bus: addresses, ids, and whom a question goes to. */

#include "bus/bus.h"

#include <endian.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/text/str.h"

/* ---- addresses ----------------------------------------------------------------------------- */

enum { NODE_DIGITS = 16, LOOP_DIGITS = 10 };

void bus_address_print(struct bus_address address, char ret_text[BUS_ADDRESS_TEXT])
{
    const uint64_t node = htobe64(address.node);

    peg__hex((const unsigned char *)&node, sizeof(node), ret_text);
    ret_text[NODE_DIGITS] = '.';
    *peg__put_decimal(ret_text + NODE_DIGITS + 1, address.loop) = '\0';
}

static bool parse_node(peg_str text, uint64_t *ret_node)
{
    uint64_t node = 0;

    for (size_t i = 0; i < text.len; i++) {
        const int digit = peg__hex_value(text.ptr[i]);

        if (digit < 0)
            return false;
        node = node << 4 | (uint64_t)digit;
    }
    *ret_node = node;
    return true;
}

static bool parse_loop(peg_str text, uint32_t *ret_loop)
{
    uint64_t loop = 0;

    if (text.len == 0 || text.len > LOOP_DIGITS)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        loop = loop * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    if (loop > UINT32_MAX)
        return false;
    *ret_loop = (uint32_t)loop;
    return true;
}

bool bus_address_parse(peg_str text, struct bus_address *ret_address)
{
    struct bus_address address;

    if (text.len <= NODE_DIGITS + 1 || text.ptr[NODE_DIGITS] != '.' ||
        !parse_node(peg__strn(text.ptr, NODE_DIGITS), &address.node) ||
        !parse_loop(peg__str_from(text, NODE_DIGITS + 1), &address.loop))
        return false;
    *ret_address = address;
    return true;
}

bool bus_address_equal(struct bus_address a, struct bus_address b)
{
    return a.node == b.node && a.loop == b.loop;
}

/* ---- ids ----------------------------------------------------------------------------------- */

void bus_id_print(const struct bus_id *id, char ret_text[BUS_ID_TEXT])
{
    peg__hex(id->bytes, id->len, ret_text);
}

/* What a digit stands for. Without branches: digits of ids are as good as random, and a Hello may
 * list thousands of them. */
static uint8_t hex_digit(uint8_t c, uint8_t *ret_is_bad)
{
    const uint8_t number = (uint8_t)(c - '0');
    const uint8_t letter = (uint8_t)((c | 0x20) - 'a');

    *ret_is_bad |= (number > 9) & (letter > 5);
    return number <= 9 ? number : (uint8_t)(letter + 10);
}

bool bus_id_parse(peg_str text, struct bus_id *ret_id)
{
    struct bus_id id = {.len = (uint8_t)(text.len / 2)};
    uint8_t is_bad = 0;

    if (text.len != 32 && text.len != 64)
        return false;
    for (size_t i = 0; i < id.len; i++) {
        const uint8_t high = hex_digit((uint8_t)text.ptr[2 * i], &is_bad);
        const uint8_t low = hex_digit((uint8_t)text.ptr[2 * i + 1], &is_bad);

        id.bytes[i] = (uint8_t)(high << 4 | low);
    }
    if (is_bad)
        return false;
    *ret_id = id;
    return true;
}

bool bus_id_equal(const struct bus_id *a, const struct bus_id *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A call asks a dozen times: SipHash would be a twentieth of all that is done for it. Behind the
 * end of an id there are zeros. */
uint64_t bus_id_hash(const struct bus_id *id, struct peg__hash_key key)
{
    uint64_t words[4];
    uint64_t hash;

    memcpy(words, id->bytes, sizeof(words));
    hash = fold(words[0] ^ key.k0, words[1] ^ key.k1);
    if (id->len > 16)
        hash = fold(hash ^ words[2] ^ key.k1, words[3] ^ key.k0);
    /* Ids that are counted up would still lie a step apart each: a second product spreads them. */
    return fold(hash ^ key.k0, UINT64_C(0x9e3779b97f4a7c15));
}

/* ---- whom a question goes to --------------------------------------------------------------- */

/* One wait hears one answer: that to the last question. */
static void make_free(struct bus *bus, struct bus_wait *wait)
{
    if (wait && wait->pending)
        bus->ops->forget_wait(bus, wait);
}

void bus_listen(struct bus *bus, const struct bus_events *events, void *user)
{
    bus->events = *events;
    bus->user = user;
}

int64_t bus_now_ns(struct bus *bus)
{
    return bus->ops->now_ns(bus);
}

int64_t bus_now_ms(struct bus *bus)
{
    return bus->ops->now_ms(bus);
}

void bus_arm(struct bus *bus, struct net_timer *timer, int64_t due_ns)
{
    bus->ops->arm(bus, timer, due_ns);
}

void bus_disarm(struct bus *bus, struct net_timer *timer)
{
    bus->ops->disarm(bus, timer);
}

uint64_t bus_epoch(struct bus *bus)
{
    return bus->ops->epoch(bus);
}

bool bus_is_fenced(struct bus *bus)
{
    return bus->ops->is_fenced(bus);
}

void bus_send(struct bus *bus, struct bus_address to, const struct bus_message *message,
              struct bus_wait *wait)
{
    make_free(bus, wait);
    bus->ops->send(bus, to, message, wait);
}

void bus_put_if_absent(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                       int64_t keep_until_ms, struct bus_wait *wait)
{
    make_free(bus, wait);
    bus->ops->put_if_absent(bus, key, value, keep_until_ms, wait);
}

void bus_read(struct bus *bus, const struct bus_key *key, struct bus_wait *wait)
{
    make_free(bus, wait);
    bus->ops->read(bus, key, wait);
}

void bus_forget(struct bus *bus, const struct bus_key *key, uint32_t n_attempts)
{
    bus->ops->forget(bus, key, n_attempts);
}

void bus_wait_add(struct bus *bus, const struct bus_key *key, int64_t keep_until_ms,
                  struct bus_wait *wait)
{
    make_free(bus, wait);
    bus->ops->wait_add(bus, key, keep_until_ms, wait);
}

void bus_waiters(struct bus *bus, const struct bus_key *key, struct bus_wait *wait)
{
    make_free(bus, wait);
    bus->ops->waiters(bus, key, wait);
}

void bus_lease(struct bus *bus, peg_str name, int64_t lease_ms, enum bus_lease_mode mode,
               struct bus_wait *wait)
{
    make_free(bus, wait);
    bus->ops->lease(bus, name, lease_ms, mode, wait);
}

void bus_release(struct bus *bus, peg_str name)
{
    bus->ops->release(bus, name);
}

void bus_leases(struct bus *bus, const peg_str *names, size_t n, struct bus_wait *wait)
{
    make_free(bus, wait);
    bus->ops->leases(bus, names, n, wait);
}

void bus_map_set(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                 uint64_t expected, struct bus_wait *wait)
{
    make_free(bus, wait);
    bus->ops->map_set(bus, map, key, value, expected, wait);
}

void bus_map_watch(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    bus->ops->map_watch(bus, map, watch);
}

void bus_map_unwatch(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    bus->ops->map_unwatch(bus, map, watch);
}

void bus_post(struct bus *bus, uint32_t loop, struct bus_post *post)
{
    bus->ops->post(bus, loop, post);
}

void bus_forget_wait(struct bus *bus, struct bus_wait *wait)
{
    if (wait->pending)
        bus->ops->forget_wait(bus, wait);
}

struct bus *bus_free(struct bus *bus)
{
    if (bus)
        bus->ops->free(bus);
    return NULL;
}
