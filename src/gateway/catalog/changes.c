/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/catalog/changes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits/recent.h"
#include "base/mem.h"
#include "base/text/str.h"

enum { RING = PEG_LIMIT_GATEWAY_WATCH_HISTORY, BYTES = PEG_LIMIT_GATEWAY_WATCH_HISTORY_BYTES };

/* Number 1 is the first ever. Places of texts are counted from the beginning, too. */
struct change {
    uint64_t text;
    int64_t at_ns;
    uint16_t len;
    uint8_t kind;
};

struct gw_changes {
    pthread_mutex_t lock;
    atomic_bool has_begun;
    uint64_t origin;
    unsigned n_loops;
    /* under the lock */
    uint64_t n;
    uint64_t n_bytes;
    struct change ring[RING];
    char texts[BYTES];
};

struct gw_changes *gw_changes_new(uint64_t origin, unsigned n_loops)
{
    struct gw_changes *changes = (struct gw_changes *)peg__alloc(sizeof(*changes));

    if (!changes)
        return NULL;
    pthread_mutex_init(&changes->lock, NULL);
    atomic_init(&changes->has_begun, false);
    changes->origin = origin;
    changes->n_loops = n_loops;
    changes->n = 0;
    changes->n_bytes = 0;
    return changes;
}

struct gw_changes *gw_changes_free(struct gw_changes *changes)
{
    if (!changes)
        return NULL;
    pthread_mutex_destroy(&changes->lock);
    peg__free(changes);
    return NULL;
}

void gw_changes_begin(struct gw_changes *changes)
{
    atomic_store(&changes->has_begun, true);
}

bool gw_changes_has_begun(const struct gw_changes *changes)
{
    return atomic_load(&changes->has_begun);
}

/* A text does not wrap around. Names of toolsets are shorter than the ring by far. */
static uint64_t place_text(struct gw_changes *changes, peg_str text)
{
    const size_t at = changes->n_bytes % BYTES;
    uint64_t place;

    if (text.len > BYTES - at)
        changes->n_bytes += BYTES - at;
    place = changes->n_bytes;
    memcpy(changes->texts + place % BYTES, text.ptr, text.len);
    changes->n_bytes += text.len;
    return place;
}

uint64_t gw_changes_note(struct gw_changes *changes, peg_str toolset, unsigned kind)
{
    struct change change = {
        .at_ns = peg__mono_ns(), .len = (uint16_t)toolset.len, .kind = (uint8_t)kind};
    uint64_t number;

    pthread_mutex_lock(&changes->lock);
    change.text = place_text(changes, toolset);
    number = ++changes->n;
    changes->ring[number % RING] = change;
    pthread_mutex_unlock(&changes->lock);
    return number;
}

uint64_t gw_changes_now(struct gw_changes *changes)
{
    uint64_t n;

    pthread_mutex_lock(&changes->lock);
    n = changes->n;
    pthread_mutex_unlock(&changes->lock);
    return n;
}

/* ---- places ---- */

void gw_changes_print(const struct gw_changes *changes, uint64_t place,
                      char ret_text[GW_CHANGES_PLACE])
{
    snprintf(ret_text, GW_CHANGES_PLACE, "%016llx-%llu", (unsigned long long)changes->origin,
             (unsigned long long)place);
}

/* False: it is of another ring, or none. */
static bool parse_place(const struct gw_changes *changes, peg_str text, uint64_t *ret_place)
{
    char expected[GW_CHANGES_PLACE];
    uint64_t place = 0;
    size_t n;

    gw_changes_print(changes, 0, expected);
    n = strlen(expected) - 1;
    if (text.len <= n || text.len > n + 18 || memcmp(text.ptr, expected, n) != 0)
        return false;
    for (; n < text.len; n++) {
        if (!peg__is_digit(text.ptr[n]))
            return false;
        place = place * 10 + (uint64_t)(text.ptr[n] - '0');
    }
    *ret_place = place;
    return true;
}

/* ---- what was missed; with the lock ---- */

static const struct change *find_change(const struct gw_changes *changes, uint64_t number)
{
    const struct change *change = &changes->ring[number % RING];

    if (!number || number > changes->n || changes->n - number >= RING ||
        changes->n_bytes - change->text > BYTES)
        return NULL;
    return change;
}

static peg_str change_name(const struct gw_changes *changes, const struct change *change)
{
    return peg__strn(changes->texts + change->text % BYTES, change->len);
}

/* Other loops note the same soon after: the last of them will do. */
static bool comes_again(const struct gw_changes *changes, uint64_t number)
{
    const struct change *change = &changes->ring[number % RING];
    const peg_str name = change_name(changes, change);

    for (uint64_t i = number + 1; i <= changes->n && i <= number + 2 * (uint64_t)changes->n_loops;
         i++) {
        const struct change *later = &changes->ring[i % RING];

        if (later->kind == change->kind && peg__str_eq(change_name(changes, later), name))
            return true;
    }
    return false;
}

/* The first that is to be reported. */
static uint64_t begin_of(const struct gw_changes *changes, uint64_t place)
{
    const int64_t recent_ns = peg__mono_ns() - PEG_LIMIT_GATEWAY_LOOP_LAG_MS * PEG_NS_PER_MS;
    uint64_t first = place + 1;
    const struct change *before = changes->n_loops > 1 ? find_change(changes, place) : NULL;

    while (before && before->at_ns > recent_ns) {
        first--;
        before = find_change(changes, first - 1);
    }
    return first;
}

static bool tell_since(const struct gw_changes *changes, uint64_t place, size_t max,
                       gw_changes_fn *fn, void *user)
{
    size_t n_told = 0;

    if (place > changes->n || (place < changes->n && !find_change(changes, place + 1)))
        return false;
    for (uint64_t i = begin_of(changes, place); i <= changes->n; i++) {
        const struct change *change = find_change(changes, i);

        if (!change || comes_again(changes, i))
            continue;
        if (n_told++ == max)
            return false;
        fn(user, i, change_name(changes, change), change->kind);
    }
    return true;
}

bool gw_changes_since(struct gw_changes *changes, peg_str place, size_t max, gw_changes_fn *fn,
                      void *user)
{
    uint64_t number;
    bool is_told;

    if (!gw_changes_has_begun(changes) || !parse_place(changes, place, &number))
        return false;
    pthread_mutex_lock(&changes->lock);
    is_told = tell_since(changes, number, max, fn, user);
    pthread_mutex_unlock(&changes->lock);
    return is_told;
}
