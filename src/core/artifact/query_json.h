/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_ARTIFACT_QUERY_JSON_H
#define PEG_CORE_ARTIFACT_QUERY_JSON_H

/* What a JSON artifact is parsed into: records, one for a JSON or JSON5 text, else one a line. */

#include "pegboard/artifact.h"

enum peg__json_format {
    PEG__FORMAT_JSON,
    PEG__FORMAT_LINES,
    PEG__FORMAT_JSON5,
};

/* Owned, immutable. */
struct peg__records {
    enum peg__json_format format;
    peg_json_doc *doc;
    const peg_json *first; /* NULL if there are none */
    const peg_json *end;   /* behind the last */
    size_t n;
};

/* for each record of records */
#define PEG__RECORDS_EACH(records, record)                                                         \
    for (const peg_json *record = (records)->first; record < (records)->end;                       \
         record = peg_json_next(record))

/* The first of JSON, JSON Lines and JSON5 that the text is. PEG_EPARSE (E_ARTIFACT_NOT_JSON) says
 * why it is none of them; PEG_ELIMIT as peg_json_parse(); PEG_ENOMEM. */
peg_status peg__records_new(peg_str text, struct peg__records **ret_records, peg_error *reterr);
struct peg__records *peg__records_free(struct peg__records *records);

#endif
