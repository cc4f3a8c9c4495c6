/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Results that come in several frames, put together. Each is of a call that the provider has, and
 * goes with it: also one that was begun and is never finished, because the call was refused after
 * all, answered in another way, or dropped.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "gateway/access/access.h"
#include "gateway/calls/call.h"
#include "gateway/rpc/attached.h"

struct gw_assembly *gw_assembly_find(const struct gw_attached *attached, const struct bus_id *id,
                                     uint32_t attempt)
{
    return attached->assemblies
               ? (struct gw_assembly *)gw_table_find(&attached->assembling, id, attempt)
               : NULL;
}

/* ---- room ------------------------------------------------------------------------------------ */

void gw_assembly_count(struct gw_assembly *assembly, size_t n_bytes)
{
    struct gw_attached *attached = assembly->attached;

    peg__quota_give_back(&attached->desk->results->bytes, attached->account, assembly->counted);
    peg__quota_add(&attached->desk->results->bytes, attached->account, n_bytes);
    attached->assembled += n_bytes - assembly->counted;
    assembly->counted = n_bytes;
}

static peg_status check_assembly_quota(const struct gw_attached *attached, size_t n,
                                       peg_error *reterr)
{
    if (attached->assembled + n > PEG_LIMIT_GATEWAY_ASSEMBLED_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_RESULT_TOO_LARGE",
                         "unfinished results of this provider hold 64 MiB: finish some of them "
                         "first");
    return gw_result_quota_check(attached->desk->results, attached->account, n, reterr);
}

/* ---- from the first chunk to the last -------------------------------------------------------- */

static void free_assembly(struct gw_assembly *assembly)
{
    struct gw_attached *attached = assembly->attached;

    gw_assembly_count(assembly, 0);
    wire_chunks_free(&assembly->chunks);
    gw_table_remove(&attached->assembling, &assembly->entry);
    if (assembly->prev)
        assembly->prev->next = assembly->next;
    else
        attached->assemblies = assembly->next;
    if (assembly->next)
        assembly->next->prev = assembly->prev;
    peg__free(assembly);
}

void gw_attached_drop_assembly(void *user, const struct bus_id *id, uint32_t attempt)
{
    struct gw_assembly *assembly = gw_assembly_find((const struct gw_attached *)user, id, attempt);

    if (assembly)
        free_assembly(assembly);
}

void gw_attached_free_assemblies(struct gw_attached *attached)
{
    while (attached->assemblies)
        free_assembly(attached->assemblies);
    gw_table_free(&attached->assembling);
    gw_result_quota_forget_wait(&attached->room);
}

static struct gw_assembly *begin_assembly(struct gw_attached *attached, const struct bus_id *id,
                                          uint32_t attempt)
{
    struct gw_assembly *assembly = (struct gw_assembly *)peg__alloc_zero(1, sizeof(*assembly));

    if (!assembly)
        return NULL;
    assembly->entry.id = *id;
    assembly->entry.attempt = attempt;
    assembly->attached = attached;
    assembly->chunks.n_before = GW_OUTCOME_CAPACITY;
    if (gw_table_add(&attached->assembling, &assembly->entry)) {
        peg__free(assembly);
        return NULL;
    }
    assembly->next = attached->assemblies;
    if (assembly->next)
        assembly->next->prev = assembly;
    attached->assemblies = assembly;
    return assembly;
}

static peg_status add_chunk(struct gw_assembly *assembly, peg_str chunk, peg_error *reterr)
{
    peg_status status = check_assembly_quota(assembly->attached, chunk.len, reterr);

    if (status)
        return status;
    status = wire_chunks_add(&assembly->chunks, chunk, reterr);
    gw_assembly_count(assembly, wire_chunks_view(&assembly->chunks).len);
    return status;
}

peg_status gw_assembly_add(struct gw_attached *attached, const struct bus_id *id, uint32_t attempt,
                           peg_str chunk, struct gw_assembly **ret_assembly, peg_error *reterr)
{
    struct gw_assembly *assembly = gw_assembly_find(attached, id, attempt);
    peg_status status;

    if (!assembly)
        assembly = begin_assembly(attached, id, attempt);
    if (!assembly)
        return peg__fail(reterr, PEG_ENOMEM, "E_OUT_OF_MEMORY",
                         "the gateway has no memory for the result");
    status = add_chunk(assembly, chunk, reterr);
    if (status)
        free_assembly(assembly);
    else
        *ret_assembly = assembly;
    return status;
}
