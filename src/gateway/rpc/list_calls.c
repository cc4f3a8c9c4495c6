/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ListCalls: what the loops of this node know of calls of one principal, newest first.
 *
 *   the loop that is asked -> another loop -> the next one ... -> the loop that was asked
 *
 * The gathering goes from loop to loop, so that only one of them has it at any time, and each adds
 * what it has. It keeps no more than a page needs, and one call more, which tells that there is
 * another page. A page begins behind the call that its token names, by when that began: calls that
 * begin or end between two pages move nothing.
 */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/rpc/rpc.h"
#include "gateway/telemetry/metrics.h"
#include "grpc/message.h"
#include "wire/wire.h"

typedef Pegboard__V1__ListCallsRequest Request;
typedef Pegboard__V1__ListCallsResponse Response;
typedef Pegboard__V1__CallInfo Info;

enum { TOKEN_TEXT = 17 + BUS_ID_TEXT };

/* Where a call stands in the list. */
struct place {
    int64_t begun_ns;
    struct bus_id id;
};

struct gathering {
    struct bus_post post;
    atomic_uint n_refs;     /* two: of the way from loop to loop, and of the RPC */
    struct grpc_call *call; /* its loop's; NULL: it has ended */
    uint32_t from;          /* that loop */
    uint32_t next;          /* the loop that is asked next */
    uint32_t n_loops;
    /* what is looked for */
    const char *principal;
    const char *toolset; /* "": any */
    const char *tool;
    int state; /* 0: any */
    bool has_token;
    struct place behind;
    /* what was found */
    struct peg__arena arena;
    struct calls_summary *found;
    size_t n_found;
    size_t max;      /* of a page */
    size_t capacity; /* of `found` */
    bool is_full;    /* it was sorted and cut: what is behind the last one is not wanted */
    bool is_incomplete;
    bool has_failed; /* there was no memory */
};

static void unref_gathering(struct gathering *gathering)
{
    if (atomic_fetch_sub(&gathering->n_refs, 1) > 1)
        return;
    peg__arena_free(&gathering->arena);
    peg__free(gathering->found);
    peg__free(gathering);
}

/* ---- order ---- */

static int compare_places(const struct place *a, const struct place *b)
{
    if (a->begun_ns != b->begun_ns)
        return a->begun_ns > b->begun_ns ? -1 : 1;
    if (a->id.len != b->id.len)
        return a->id.len > b->id.len ? -1 : 1;
    return memcmp(b->id.bytes, a->id.bytes, a->id.len);
}

static struct place call_place(const struct calls_summary *summary)
{
    return (struct place){summary->begun_ns, summary->id};
}

static int compare_summaries(const void *a, const void *b)
{
    const struct place of_a = call_place((const struct calls_summary *)a);
    const struct place of_b = call_place((const struct calls_summary *)b);

    return compare_places(&of_a, &of_b);
}

static void print_token(const struct calls_summary *last, char ret_text[TOKEN_TEXT])
{
    char id[BUS_ID_TEXT];

    bus_id_print(&last->id, id);
    snprintf(ret_text, TOKEN_TEXT, "%016llx%s", (unsigned long long)last->begun_ns, id);
}

static bool parse_token(const char *text, struct place *ret_place)
{
    char number[17] = "";
    char *end = NULL;

    if (strlen(text) <= 16 || strspn(text, "0123456789abcdef") != strlen(text))
        return false;
    memcpy(number, text, 16);
    ret_place->begun_ns = (int64_t)strtoull(number, &end, 16);
    return bus_id_parse(peg__str(text + 16), &ret_place->id);
}

/* ---- on each loop ---- */

static int call_state_of(const struct calls_summary *summary)
{
    if (summary->has_ended)
        return PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_ENDED;
    return summary->was_sent ? PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_RUNNING
                             : PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_WAITING;
}

static bool is_name_wanted(peg_str name, const char *wanted)
{
    return !wanted[0] || peg__str_is(name, wanted);
}

static bool is_call_wanted(const struct gathering *gathering, const struct calls_summary *summary)
{
    const struct place place = call_place(summary);

    if (gathering->state && gathering->state != call_state_of(summary))
        return false;
    if (!is_name_wanted(summary->toolset, gathering->toolset) ||
        !is_name_wanted(summary->tool, gathering->tool))
        return false;
    if (gathering->has_token && compare_places(&place, &gathering->behind) <= 0)
        return false;
    return !gathering->is_full || compare_summaries(summary, &gathering->found[gathering->max]) < 0;
}

static bool copy_call_text(struct peg__arena *arena, peg_str *text)
{
    const char *copy = peg__arena_copy(arena, *text);

    *text = (peg_str){copy, text->len};
    return copy != NULL;
}

static void cut(struct gathering *gathering)
{
    qsort(gathering->found, gathering->n_found, sizeof(*gathering->found), compare_summaries);
    if (gathering->n_found <= gathering->max)
        return;
    gathering->n_found = gathering->max + 1;
    gathering->is_full = true;
}

static void gather_call(void *user, const struct calls_summary *summary)
{
    struct gathering *gathering = (struct gathering *)user;
    struct peg__arena *arena = &gathering->arena;
    struct calls_summary copy = *summary;

    if (gathering->has_failed || !is_call_wanted(gathering, summary))
        return;
    if (!copy_call_text(arena, &copy.code) || !copy_call_text(arena, &copy.toolset) ||
        !copy_call_text(arena, &copy.tool) || !copy_call_text(arena, &copy.provider)) {
        gathering->has_failed = true;
        return;
    }
    gathering->found[gathering->n_found++] = copy;
    if (gathering->n_found == gathering->capacity)
        cut(gathering);
}

static void gather_loop(struct gathering *gathering, struct calls_loop *calls)
{
    const peg_str principal = peg__str(gathering->principal);

    if (!calls_list(calls, principal, gather_call, gathering) ||
        !gw_direct_list(gw_router_of(calls)->direct, principal, gather_call, gathering))
        gathering->is_incomplete = true;
    cut(gathering);
}

/* ---- the answer ---- */

static void fill_info(const struct calls_summary *summary, char *id, Info *info)
{
    info->call_id = id;
    info->state = call_state_of(summary);
    info->toolset = gw_text(summary->toolset);
    info->tool = gw_text(summary->tool);
    info->admitted_unix_ms = summary->admitted_ms;
    info->deadline_unix_ms = summary->deadline_ms;
    info->took_ms = (double)summary->took_ns / (double)PEG_NS_PER_MS;
    info->attempt = summary->attempt;
    info->provider = gw_text(summary->provider);
    info->has_identity = calls_id_is_keyed(&summary->id);
    if (!summary->has_ended)
        return;
    info->outcome = (char *)peg__unconst(gw_outcome_kind_name(summary->kind));
    info->error = summary->error == CALLS_OK
                      ? gw_text(summary->code)
                      : (char *)peg__unconst(wire_error_name(gw_error_of_call(summary->error)));
}

/* NULL: no memory. */
static Info *make_call_info(const struct calls_summary *summary, struct peg__arena *arena)
{
    Info *info = (Info *)peg__arena_alloc(arena, sizeof(*info));
    char *id = (char *)peg__arena_alloc(arena, BUS_ID_TEXT);

    if (!info || !id)
        return NULL;
    pegboard__v1__call_info__init(info);
    bus_id_print(&summary->id, id);
    fill_info(summary, id, info);
    return info;
}

/* False: no memory. */
static bool fill_calls(const struct gathering *gathering, struct peg__arena *arena,
                       Response *response, char token[TOKEN_TEXT])
{
    size_t bytes = 0;
    size_t n = 0;

    response->incomplete = gathering->is_incomplete;
    response->calls =
        (Info **)peg__arena_alloc(arena, (gathering->n_found + 1) * sizeof(*response->calls));
    if (!response->calls)
        return false;
    for (; n < gathering->n_found && n < gathering->max && bytes <= PEG_LIMIT_GATEWAY_PAGE_BYTES;
         n++) {
        response->calls[n] = make_call_info(&gathering->found[n], arena);
        if (!response->calls[n])
            return false;
        bytes += grpc_message_packed_size(&response->calls[n]->base);
    }
    response->n_calls = n;
    if (n && n < gathering->n_found) {
        print_token(&gathering->found[n - 1], token);
        response->next_page_token = token;
    }
    return true;
}

static void reply_calls(const struct gathering *gathering)
{
    Response response = PEGBOARD__V1__LIST_CALLS_RESPONSE__INIT;
    char token[TOKEN_TEXT];

    if (!gathering->has_failed &&
        fill_calls(gathering, grpc_call_arena(gathering->call), &response, token))
        grpc_call_reply_message(gathering->call, &response.base);
    else
        gw_fail_memory(gathering->call);
}

/* ---- from loop to loop ---- */

static void on_gathered(struct bus_post *post, void *user)
{
    struct gathering *gathering = peg__container_of(post, struct gathering, post);

    if (user && gathering->call)
        reply_calls(gathering);
    unref_gathering(gathering);
}

static void on_loop(struct bus_post *post, void *user);

static void ask_next_loop(struct gathering *gathering, struct calls_loop *calls)
{
    gathering->next += gathering->next == gathering->from;
    if (gathering->next < gathering->n_loops) {
        gathering->post.fn = on_loop;
        bus_post(calls->bus, gathering->next++, &gathering->post);
    } else {
        gathering->post.fn = on_gathered;
        bus_post(calls->bus, gathering->from, &gathering->post);
    }
}

/* A loop that has ended: the node stops, and so does the RPC. */
static void on_loop(struct bus_post *post, void *user)
{
    struct gathering *gathering = peg__container_of(post, struct gathering, post);
    struct calls_loop *calls = (struct calls_loop *)user;

    if (!calls) {
        unref_gathering(gathering);
        return;
    }
    gather_loop(gathering, calls);
    ask_next_loop(gathering, calls);
}

/* ---- the RPC ---- */

static peg_status check_list_calls(const Request *request, struct place *ret_behind,
                                   peg_error *reterr)
{
    peg_status status = gw_check_size(request->page_size, "page_size", reterr);

    if (!status && request->toolset[0])
        status = wire_check_name(peg__str(request->toolset), "toolset", reterr);
    if (!status && request->tool[0])
        status = wire_check_name(peg__str(request->tool), "tool", reterr);
    if (!status && ((int)request->state < 0 ||
                    (int)request->state > PEGBOARD__V1__DESCRIBE_CALL_RESPONSE__STATE__STATE_ENDED))
        status = peg__fail(reterr, PEG_EINVAL, "E_INVALID_RANGE", "there is no state %d",
                           (int)request->state);
    if (!status && request->page_token[0] && !parse_token(request->page_token, ret_behind))
        status = peg__fail(reterr, PEG_EINVAL, "E_NAME",
                           "page_token is not the next_page_token of a page before");
    return status;
}

/* Room for twice a page: what comes later may be newer. NULL: no memory. */
static struct gathering *make_gathering(struct grpc_call *call, const Request *request)
{
    struct gathering *gathering = (struct gathering *)peg__alloc_zero(1, sizeof(*gathering));
    const size_t max = gw_size_or_default(request->page_size);

    if (!gathering)
        return NULL;
    atomic_init(&gathering->n_refs, 1);
    gathering->call = call;
    gathering->state = (int)request->state;
    gathering->has_token = request->page_token[0] != '\0';
    gathering->max = max;
    gathering->capacity = 2 * (max + 1);
    gathering->principal = peg__arena_copy(&gathering->arena, gw_call_principal(call)->name);
    gathering->toolset = peg__arena_copy(&gathering->arena, peg__str(request->toolset));
    gathering->tool = peg__arena_copy(&gathering->arena, peg__str(request->tool));
    gathering->found =
        (struct calls_summary *)peg__alloc_zero(gathering->capacity, sizeof(*gathering->found));
    if (gathering->principal && gathering->toolset && gathering->tool && gathering->found)
        return gathering;
    unref_gathering(gathering);
    return NULL;
}

void gw_serve_list_calls(struct grpc_call *call, const Request *request, void *node)
{
    struct calls_loop *calls = gw_node_calls((struct gw_node *)node, grpc_call_loop(call));
    struct place behind = {0};
    struct gathering *gathering;
    peg_error error;

    if (check_list_calls(request, &behind, &error)) {
        gw_fail_because(call, &error);
        return;
    }
    gathering = make_gathering(call, request);
    if (!gathering) {
        gw_fail_memory(call);
        return;
    }
    gathering->behind = behind;
    gathering->from = calls->bus->self.loop;
    gathering->n_loops = ((struct gw_node *)node)->n_loops;
    grpc_call_set_state(call, gathering);
    gather_loop(gathering, calls);
    if (gathering->n_loops == 1) {
        reply_calls(gathering);
        return;
    }
    atomic_fetch_add(&gathering->n_refs, 1);
    ask_next_loop(gathering, calls);
}

void gw_serve_list_calls_on_end(struct grpc_call *call, void *node)
{
    struct gathering *gathering = (struct gathering *)grpc_call_state(call);

    (void)node;
    if (!gathering)
        return;
    gathering->call = NULL;
    unref_gathering(gathering);
}
