/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_SIZED_H
#define PEG_BASE_SIZED_H

/*
 * Structs that a caller allocates begin with their size, so that a later library can add members at
 * the end (docs/reference/abi.md). A function of the API reads such a struct before it looks at a
 * member:
 *
 *   PEG__READ_OR_RETURN(options, PEG_POOL_OPTIONS_INIT, reterr);
 *
 * From there on `options` has this library's size. A struct of another size is copied: members that
 * the caller does not know are zero, which means their default.
 */

#include <stddef.h>

#include "base/shared_symbols.h"
#include "pegboard/common.h"

/* One struct by value inside another; at most one of each. */
struct peg__layout {
    const char *macro; /* that sets the size */
    size_t size;
    size_t at; /* where the inner struct begins */
    const struct peg__layout *inner;
};

/* Leaves *at alone if it is NULL or of this library's size, else lets it point to a copy in `own`.
 * PEG_EINVAL (E_STRUCT_SIZE): no size, or a member is set that this library does not have. */
PEG__SHARED peg_status peg__sized_read(const void **at, void *own, const struct peg__layout *layout,
                                       peg_error *reterr);

#define PEG__LAYOUT(type, name)                                                                    \
    {                                                                                              \
        .macro = #name, .size = sizeof(type)                                                       \
    }
#define PEG__LAYOUT_AROUND(type, member, within, name)                                             \
    {                                                                                              \
        .macro = #name, .size = sizeof(type), .at = offsetof(type, member), .inner = within        \
    }

/* Declares the place for a copy, and returns from the function it stands in if reading fails. */
#define PEG__READ_AS_OR_RETURN(options, layout, reterr)                                            \
    _Alignas(max_align_t) unsigned char options##_copy[sizeof(*(options))];                        \
    const peg_status options##_status =                                                            \
        peg__sized_read((const void **)&(options), options##_copy, layout, reterr);                \
    if (options##_status)                                                                          \
    return options##_status

#define PEG__READ_OR_RETURN(options, name, reterr)                                                 \
    static const struct peg__layout options##_layout = {.macro = #name,                            \
                                                        .size = sizeof(*(options))};               \
    _Alignas(max_align_t) unsigned char options##_copy[sizeof(*(options))];                        \
    const peg_status options##_status =                                                            \
        !(options) || (options)->size == sizeof(*(options))                                        \
            ? PEG_OK                                                                               \
            : peg__sized_read((const void **)&(options), options##_copy, &options##_layout,        \
                              reterr);                                                             \
    if (options##_status)                                                                          \
    return options##_status

#endif
