/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_REPLY_PART_H
#define PEG_ENGINE_REPLY_PART_H

/* What reply.c and reply_finish.c share. */

#include "base/id.h"
#include "engine/reply.h"

/* The last one of a name counts. In the reply's arena, but for the document. */
struct peg__part_member {
    peg_str name;
    peg_json_doc *value;
    struct peg__part_member *next;
};

/* In the reply's arena, but for the buffers, the documents and the bag. */
struct peg__part {
    enum peg__part_kind kind;
    uint32_t rank;
    struct peg__buf text; /* words, or arguments */
    struct peg__buf name; /* of the tool, as the provider calls it */
    const char *call_id;  /* NULL: not told yet */
    size_t n_told;        /* bytes of text that an event has told */
    struct peg__part_member *payload;
    peg_bag *metadata;
    char id[PEG_UUID_TEXT]; /* of the events, and of the block that it becomes */
};

const peg_clock *peg__reply_clock(const struct peg__reply *reply);
/* Tells what was not told yet. Arguments wait until the call has an id and a name. */
void peg__part_report(struct peg__reply *reply, struct peg__part *part);
/* Our name for the tool of a call. */
peg_str peg__part_tool(const struct peg__reply *reply, const struct peg__part *part);

#endif
