/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/dialects/internal.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

peg_definition_losses *peg__losses_new(void)
{
    return peg__alloc_zero(1, sizeof(peg_definition_losses));
}

peg_definition_losses *peg_definition_losses_free(peg_definition_losses *losses)
{
    if (!losses)
        return NULL;
    peg__arena_free(&losses->arena);
    peg__free(losses->items);
    peg__free(losses);
    return NULL;
}

size_t peg_definition_losses_len(const peg_definition_losses *losses)
{
    return losses ? losses->n : 0;
}

const peg_definition_loss *peg_definition_losses_at(const peg_definition_losses *losses, size_t i)
{
    return i < peg_definition_losses_len(losses) ? &losses->items[i] : NULL;
}

void peg__losses_cut(peg_definition_losses *losses, size_t n)
{
    if (losses && losses->n > n)
        losses->n = n;
}

/* ---- adding ----------------------------------------------------------------------------- */

static peg_str copy_loss_text(peg_definition_losses *losses, peg_str s)
{
    char *bytes;

    if (s.len == 0)
        return peg__str("");
    bytes = peg__arena_copy(&losses->arena, s);
    if (!bytes) {
        losses->status = PEG_ENOMEM;
        return peg__str("");
    }
    return peg__strn(bytes, s.len);
}

/* The losses of a tool follow each other: its name is copied once. */
static peg_str copy_tool(peg_definition_losses *losses, peg_str tool)
{
    if (!peg__str_eq(losses->tool, tool))
        losses->tool = copy_loss_text(losses, tool);
    return losses->tool;
}

static void append_loss(peg_definition_losses *losses, const peg_definition_loss *loss)
{
    if (!PEG__RESERVE(losses->items, losses->n + 1, losses->capacity)) {
        losses->status = PEG_ENOMEM;
        return;
    }
    losses->items[losses->n] =
        (peg_definition_loss){.tool = copy_tool(losses, loss->tool),
                              .where = copy_loss_text(losses, loss->where),
                              .keyword = copy_loss_text(losses, loss->keyword),
                              .what = loss->what,
                              .note = loss->note};
    if (!losses->status)
        losses->n++;
}

void peg__losses_add(peg_definition_losses *losses, const peg_definition_loss *loss)
{
    static const peg_definition_loss more = {.what = "dropped",
                                             .note = PEG_LIT("more is lost than is listed here")};

    if (!losses || losses->status || losses->n >= PEG_LIMIT_LOSSES)
        return;
    append_loss(losses, losses->n + 1 < PEG_LIMIT_LOSSES ? loss : &more);
}
