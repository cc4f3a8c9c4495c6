/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_FILE_DATA_URL_H
#define PEG_TURN_FILE_DATA_URL_H

/* data: URLs of RFC 2397: bytes that stand in the URL itself. */

#include "pegboard/reader.h"

/* Owned. */
struct peg__data_url {
    peg_reader *reader;
    char type[128]; /* without parameters; "" if there is none */
};

/* Starts with "data:". PEG_EPARSE if it is none, PEG_ENOMEM. */
peg_status peg__data_url_read(const char *url, struct peg__data_url *ret_data,
                              peg_error *reterr) PEG_MUST_USE;
void peg__data_url_free(struct peg__data_url *data);

#endif
