/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_STORE_STORE_SQLITE_H
#define PEG_STORE_STORE_SQLITE_H

#include "store/migrate.h"

/* What the databases of this version look like; tests go on from here. */
extern const struct store_schema store_sqlite_schema;

#endif
