/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_STORE_RECORD_H
#define PEG_STORE_RECORD_H

/* What every store asks of a record. */

#include "pegboard/store.h"

/* PEG_EINVAL (E_STORE_RECORD): it has no name; PEG_ELIMIT (E_STORE_RECORD): it is too long. */
peg_status store_check_record(const peg_store_record *record, peg_error *reterr) PEG_MUST_USE;
/* PEG_ESTATE (E_STORE_REVISION) if the revision that stands is not below the record's. */
peg_status store_check_revision(const peg_store_record *record, uint64_t standing,
                                peg_error *reterr) PEG_MUST_USE;

#endif
