/* SPDX-License-Identifier: Apache-2.0 */

#include "schema/compile/compile.h"

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/json.h"

static const char *const expected[] = {
    "http://json-schema.org/draft-04/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2019-09/meta/core",
    "https://json-schema.org/draft/2019-09/meta/applicator",
    "https://json-schema.org/draft/2019-09/meta/validation",
    "https://json-schema.org/draft/2019-09/meta/meta-data",
    "https://json-schema.org/draft/2019-09/meta/format",
    "https://json-schema.org/draft/2019-09/meta/content",
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2020-12/meta/core",
    "https://json-schema.org/draft/2020-12/meta/applicator",
    "https://json-schema.org/draft/2020-12/meta/unevaluated",
    "https://json-schema.org/draft/2020-12/meta/validation",
    "https://json-schema.org/draft/2020-12/meta/meta-data",
    "https://json-schema.org/draft/2020-12/meta/format-annotation",
    "https://json-schema.org/draft/2020-12/meta/format-assertion",
    "https://json-schema.org/draft/2020-12/meta/content",
    "https://json-schema.org/v1",
    "https://json-schema.org/v1/2026",
};

static const struct peg__meta_doc *find(const char *uri)
{
    for (size_t i = 0; i < peg__n_meta_docs; i++)
        if (strcmp(peg__meta_docs[i].uri, uri) == 0)
            return &peg__meta_docs[i];
    return NULL;
}

TEST(meta_schemas_of_every_dialect_are_there)
{
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        if (!find(expected[i]))
            T_FAIL("%s is missing", expected[i]);

    CHECK_INT(peg__n_meta_docs, sizeof(expected) / sizeof(expected[0]));
}

TEST(meta_schemas_are_json_objects_that_name_their_own_uri)
{
    for (size_t i = 0; i < peg__n_meta_docs; i++) {
        const struct peg__meta_doc *meta = &peg__meta_docs[i];
        peg_json_doc *doc = NULL;
        const peg_json *id;
        peg_error error;

        CHECK_INT(strlen(meta->json), meta->json_len);
        CHECK_STATUS(peg_json_parse(peg__strn(meta->json, meta->json_len), NULL, &doc, &error),
                     PEG_OK, error);
        id = peg_json_get(peg_json_root(doc), "$id");
        if (!id)
            id = peg_json_get(peg_json_root(doc), "id");
        CHECK(id && peg__str_starts(peg_json_str(id), peg__str(meta->uri)));
        CHECK(!strchr(meta->uri, '#'));
        CHECK(peg_json_get(peg_json_root(doc), "$schema"));
        peg_json_doc_free(doc);
    }
}
