/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sized.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"

static size_t size_at(const unsigned char *from)
{
    size_t size;

    memcpy(&size, from, sizeof(size));
    return size;
}

static bool fits(const unsigned char *from, const struct peg__layout *layout)
{
    for (; layout; from += layout->at, layout = layout->inner)
        if (size_at(from) != layout->size)
            return false;
    return true;
}

static peg_status fail_unset(const struct peg__layout *layout, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_STRUCT_SIZE",
                     "the size of the struct is not set: initialise it with {%s}", layout->macro);
}

/* What the caller has beyond this library's members must be zero: else it asks for something that
 * this library cannot do. */
static peg_status copy_part(unsigned char *own, size_t own_size, const unsigned char *from,
                            size_t size, const char *macro, peg_error *reterr)
{
    memset(own, 0, own_size);
    memcpy(own, from, size < own_size ? size : own_size);
    for (size_t i = own_size; i < size; i++)
        if (from[i])
            return peg__fail(reterr, PEG_EINVAL, "E_STRUCT_SIZE",
                             "the struct of %s sets a member that this libpegboard does not "
                             "have: install the version that the program was built with",
                             macro);
    return PEG_OK;
}

static peg_status copy_plain(unsigned char *own, const unsigned char *from,
                             const struct peg__layout *layout, peg_error *reterr)
{
    const size_t size = size_at(from);

    if (size < sizeof(size))
        return fail_unset(layout, reterr);
    return copy_part(own, layout->size, from, size, layout->macro, reterr);
}

/* In front of the inner struct both have the same members; behind it they begin where it ends. */
static peg_status copy_around(unsigned char *own, const unsigned char *from,
                              const struct peg__layout *layout, peg_error *reterr)
{
    const struct peg__layout *inner = layout->inner;
    const size_t size = size_at(from);
    size_t inner_size;

    if (size < layout->at + sizeof(size))
        return fail_unset(layout, reterr);
    inner_size = size_at(from + layout->at);
    if (inner_size < sizeof(size) || inner_size > size - layout->at)
        return fail_unset(inner, reterr);
    memcpy(own, from, layout->at);
    return copy_part(own + layout->at + inner->size, layout->size - layout->at - inner->size,
                     from + layout->at + inner_size, size - layout->at - inner_size, layout->macro,
                     reterr);
}

peg_status peg__sized_read(const void **at, void *own, const struct peg__layout *layout,
                           peg_error *reterr)
{
    const unsigned char *from = *at;
    unsigned char *to = own;
    peg_status status = PEG_OK;

    if (!from || fits(from, layout))
        return PEG_OK;
    for (; layout->inner && !status; layout = layout->inner) {
        status = copy_around(to, from, layout, reterr);
        memcpy(to, &layout->size, sizeof(layout->size));
        from += layout->at;
        to += layout->at;
    }
    if (status || (status = copy_plain(to, from, layout, reterr)))
        return status;
    memcpy(to, &layout->size, sizeof(layout->size));
    *at = own;
    return PEG_OK;
}
