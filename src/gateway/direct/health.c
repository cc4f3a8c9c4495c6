/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Registration, pings and pongs. A ping that is sent before the group of the providers is there is
 * lost, so the gateway makes the group; it has no consumer of its own in it.
 */

#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/direct/internal.h"

/* ---- pings ----------------------------------------------------------------------------------- */

enum { PING_ID = 24 + PEG_ID_HEX_TEXT };

/* "<revision of the toolset>/<random>": an answer says which schemas it is for. */
void direct_ping(struct gw_direct *direct, const struct gw_toolset *toolset,
                 struct bus_stream_wait *wait)
{
    char key[PULSE_NAME];
    char random[PEG_ID_HEX_TEXT];
    char id[PING_ID];
    struct pulse_entry ping = {.event = PULSE_PING};
    struct bus_stream_add add = {.name = PEG_LIT("ping"), .makes_stream = true};

    if (!peg__id_hex(random))
        random[0] = '\0';
    snprintf(id, sizeof(id), "%llu/%s", (unsigned long long)toolset->revision, random);
    ping.ping.ping_id = peg__str(id);
    peg__buf_clear(&direct->text);
    pulse_entry_write(&ping, &direct->text);
    if (direct->text.status)
        return; /* the next one comes soon */
    add.key = pulse_request_key(toolset->name, key);
    add.payload = peg__buf_view(&direct->text);
    bus_stream_add(direct->bus, &add, wait);
}

/* Of a ping of ours; 0: of another's, which proves as much. */
static uint64_t revision_of(peg_str ping_id)
{
    uint64_t revision = 0;
    size_t i = 0;

    while (i < ping_id.len && i < 19 && ping_id.ptr[i] >= '0' && ping_id.ptr[i] <= '9')
        revision = 10 * revision + (uint64_t)(ping_id.ptr[i++] - '0');
    return i > 0 && i < ping_id.len && ping_id.ptr[i] == '/' ? revision : 0;
}

void gw_direct_pong(struct gw_direct *direct, const struct gw_toolset *toolset, peg_str ping_id)
{
    const uint64_t revision = revision_of(ping_id);

    if (revision && revision < toolset->revision)
        return;
    gw_presence_put_direct(direct->router->presence, toolset->name, toolset->revision, false);
}

/* ---- registration ---------------------------------------------------------------------------- */

struct direct_opening {
    struct bus_stream_wait stream; /* first */
    struct gw_direct *direct;
    struct direct_opening *next;
    struct direct_opening *prev;
    struct gw_toolset *toolset;
    struct gw_direct_opening *asker; /* NULL: it does not wait any more */
};

static void free_opening(struct direct_opening *opening)
{
    struct gw_direct *direct = opening->direct;

    bus_forget_wait(direct->bus, &opening->stream.wait);
    PEG_LIST_REMOVE(direct->openings, opening, next, prev);
    if (opening->asker)
        opening->asker->pending = NULL;
    gw_toolset_unref(opening->toolset);
    peg__free(opening);
}

static void on_group(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    struct direct_opening *opening = (struct direct_opening *)wait;
    struct gw_direct_opening *asker = opening->asker;
    const peg_status status = reply->status;

    if (!status)
        direct_ping(opening->direct, opening->toolset, NULL);
    free_opening(opening);
    if (asker)
        asker->fn(asker, status);
}

void gw_direct_open_toolset(struct gw_direct *direct, struct gw_toolset *toolset,
                            const struct gw_toolset *before, struct gw_direct_opening *asker)
{
    struct direct_opening *opening = (struct direct_opening *)peg__alloc_zero(1, sizeof(*opening));
    char key[PULSE_NAME];

    if (!opening) {
        asker->fn(asker, PEG_ENOMEM);
        return;
    }
    if (!before || before->kind != GW_DIRECT)
        gw_presence_remove_direct(direct->router->presence, toolset->name);
    else if (!gw_toolset_has_schemas_of(toolset, before))
        gw_presence_put_direct(direct->router->presence, toolset->name, toolset->revision, true);
    opening->stream.fn = on_group;
    opening->direct = direct;
    opening->toolset = gw_toolset_ref(toolset);
    opening->asker = asker;
    asker->pending = opening;
    PEG_LIST_PUSH(direct->openings, opening, next, prev);
    bus_stream_make_group(direct->bus, pulse_request_key(toolset->name, key),
                          peg__str(PULSE_PROVIDERS), "$", &opening->stream);
}

void gw_direct_forget_opening(struct gw_direct_opening *asker)
{
    struct direct_opening *opening = (struct direct_opening *)asker->pending;

    if (opening)
        opening->asker = NULL;
    asker->pending = NULL;
}

void direct_drop_openings(struct gw_direct *direct)
{
    while (direct->openings)
        free_opening(direct->openings);
}
