/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/store.h"

static peg_status contract_open(const char *folder, peg_store *ret_store, peg_error *reterr)
{
    (void)folder;
    return peg_memory_store_new(ret_store, reterr);
}

static const bool contract_lasts = false;

#include "contract.h"

TEST(what_fails_for_want_of_memory_leaves_the_old_record)
{
    struct world w;

    world_open(&w);
    CHECK_STATUS(put(&w, "a", 1, "old"), PEG_OK, w.error);
    peg__mem_fail_at(1);
    CHECK_INT(put(&w, "a", 2, "new"), PEG_ENOMEM);
    CHECK_INT(put(&w, "b", 1, "new"), PEG_ENOMEM);
    peg__mem_fail_at(0);
    check_all(&w, "a 1 1000 old\n");
    world_close(&w);
}
