/* SPDX-License-Identifier: Apache-2.0 */

/* Converts toolsets of the wire to those of pegboard/client.h. */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/message.h"
#include "remote/client/remote.h"

static peg_health health_of(const Pegboard__V1__Health *health)
{
    if (health->state == PEGBOARD__V1__HEALTH__STATE__STATE_HEALTHY)
        return PEG_HEALTH_HEALTHY;
    return health->state == PEGBOARD__V1__HEALTH__STATE__STATE_UNHEALTHY ? PEG_HEALTH_UNHEALTHY
                                                                         : PEG_HEALTH_UNKNOWN;
}

void remote__info(const struct remote__registry *registry, const Pegboard__V1__ToolsetInfo *message,
                  peg_toolset_info *ret_info)
{
    static const Pegboard__V1__Health none = PEGBOARD__V1__HEALTH__INIT;
    const Pegboard__V1__Health *health = message->health ? message->health : &none;

    *ret_info = (peg_toolset_info){
        .registry = registry->name,
        .name = message->name,
        .description = message->description,
        .version = message->version,
        .tags = (const char *const *)message->tags,
        .n_tags = message->n_tags,
        .n_tools = message->tool_count,
        .registered_at = message->registered_at,
        .owner = message->owner,
        .revision = message->revision,
        .is_direct = message->kind == PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT,
        .health = health_of(health),
        .health_reason = health->reason,
        .last_pong_ms = health->last_pong_unix_ms,
        .n_providers = health->providers,
        .n_draining = health->draining,
    };
}

peg_status remote__tags(const char *const *tags, size_t *ret_n, peg_error *reterr)
{
    size_t n = 0;

    while (tags && tags[n]) {
        if (++n > PEG_LIMIT_REMOTE_TAGS)
            return peg__fail(reterr, PEG_ELIMIT, "E_CLIENT",
                             "there are more than %d tags: use fewer", PEG_LIMIT_REMOTE_TAGS);
    }
    *ret_n = n;
    return PEG_OK;
}

/* ---- one toolset with its tools -------------------------------------------------------------- */

static peg_str view_or_empty(ProtobufCBinaryData data)
{
    return data.len ? peg__strn((const char *)data.data, data.len) : peg__str("");
}

static peg_status read_tools(struct remote__toolset *t, const Pegboard__V1__GetToolsetResponse *m,
                             peg_error *reterr)
{
    peg_toolset_tool *tools = peg__arena_alloc(&t->arena, (m->n_tools + 1) * sizeof(*tools));

    if (!tools)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < m->n_tools; i++) {
        const Pegboard__V1__Tool *tool = m->tools[i];

        tools[i] = (peg_toolset_tool){
            .name = tool->name,
            .description = tool->description,
            .tags = (const char *const *)tool->tags,
            .n_tags = tool->n_tags,
            .input_schema = view_or_empty(tool->input_schema),
            .output_schema = view_or_empty(tool->output_schema),
            .is_idempotent = tool->idempotent,
            .timeout_ms = tool->timeout_ms,
            .is_read_only = tool->read_only,
            .is_destructive = tool->destructive,
            .is_additive = tool->additive,
            .title = tool->title,
            .version = tool->version,
            .artifact_kind = tool->artifact_kind,
            .examples = view_or_empty(tool->examples),
        };
    }
    t->toolset.tools = tools;
    t->toolset.n_tools = m->n_tools;
    return PEG_OK;
}

static peg_status fill_toolset(struct remote__toolset *t, const struct remote__registry *registry,
                               peg_str bytes, peg_error *reterr)
{
    const ProtobufCMessage *message;
    const Pegboard__V1__GetToolsetResponse *m;
    peg_status status = grpc_message_unpack(&pegboard__v1__get_toolset_response__descriptor,
                                            &t->arena, bytes, &message, reterr);

    if (status)
        return status;
    m = (const Pegboard__V1__GetToolsetResponse *)message;
    if (!m->toolset)
        return peg__fail(reterr, PEG_EPARSE, "E_GATEWAY", "there is no toolset in it");
    remote__info(registry, m->toolset, &t->toolset.info);
    t->toolset.stream_id = m->stream_id;
    return read_tools(t, m, reterr);
}

peg_status remote__toolset_read(const struct remote__registry *registry, peg_str bytes,
                                struct remote__toolset **ret_toolset, peg_error *reterr)
{
    struct remote__toolset *t = peg__alloc_zero(1, sizeof(*t));
    peg_status status;

    if (!t)
        return peg__fail_nomem(reterr);
    atomic_init(&t->n_refs, 1);
    t->registry_name = peg__arena_copy(&t->arena, peg__str(registry->name));
    status = t->registry_name ? fill_toolset(t, registry, bytes, reterr) : peg__fail_nomem(reterr);
    if (status) {
        peg_toolset_unref(&t->toolset);
        return status;
    }
    /* It may outlive the client. */
    t->toolset.info.registry = t->registry_name;
    *ret_toolset = t;
    return PEG_OK;
}

struct remote__toolset *remote__toolset_stale(struct remote__toolset *toolset)
{
    struct remote__toolset *t = peg__alloc_zero(1, sizeof(*t));

    if (!t)
        return NULL;
    atomic_init(&t->n_refs, 1);
    t->toolset = toolset->toolset;
    t->toolset.is_stale = true;
    t->fresh = (struct remote__toolset *)(void *)peg_toolset_ref(&toolset->toolset);
    return t;
}

peg_toolset *peg_toolset_ref(peg_toolset *toolset)
{
    peg__refs_take(&((struct remote__toolset *)(void *)toolset)->n_refs);
    return toolset;
}

peg_toolset *peg_toolset_unref(peg_toolset *toolset)
{
    struct remote__toolset *t = (struct remote__toolset *)(void *)toolset;

    while (t && peg__refs_drop(&t->n_refs)) {
        struct remote__toolset *fresh = t->fresh;

        peg__arena_free(&t->arena);
        peg__free(t);
        t = fresh;
    }
    return NULL;
}
