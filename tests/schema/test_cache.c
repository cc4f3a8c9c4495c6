/* SPDX-License-Identifier: Apache-2.0 */

/* Sharing compiled schemas: what is the same, what is dropped, from several threads. */

#include <pthread.h>

#include "fixture.h"

enum { LARGE = 64 << 20 };

/* ---- fixture ---------------------------------------------------------------------- */

static peg_schema_cache *new_cache(size_t max_bytes)
{
    peg_schema_cache *cache = NULL;
    peg_error error;

    CHECK_STATUS(peg_schema_cache_new(max_bytes, &cache, &error), PEG_OK, error);
    return cache;
}

static peg_schema *get_with(peg_schema_cache *cache, const char *text,
                            const peg_schema_options *options)
{
    peg_schema *schema = NULL;
    peg_error error;

    CHECK_STATUS(peg_schema_cache_compile(cache, peg__str(json(text)), options, &schema, &error),
                 PEG_OK, error);
    return schema;
}

static peg_schema *get(peg_schema_cache *cache, const char *text)
{
    return get_with(cache, text, NULL);
}

/* Are two texts with two sets of options one schema? */
static bool is_shared(const char *a, const peg_schema_options *options_a, const char *b,
                      const peg_schema_options *options_b)
{
    peg_schema_cache *cache = new_cache(LARGE);
    peg_schema *first = get_with(cache, a, options_a);
    peg_schema *second = get_with(cache, b, options_b);
    const bool shared = first == second;

    peg_schema_unref(first);
    peg_schema_unref(second);
    peg_schema_cache_free(cache);
    return shared;
}

/* ---- what is the same ------------------------------------------------------------------------ */

TEST(equal_schemas_are_compiled_once)
{
    const char *schema = "{'type':'object','properties':{'a':{'minimum':1}}}";

    CHECK(is_shared(schema, NULL, schema, NULL));
    CHECK(
        is_shared(schema, NULL, "{ 'type' : 'object',\n'properties':{'a':{'minimum':1}} }", NULL));
    CHECK(is_shared("{'const':'\\u0061'}", NULL, "{'const':'a'}", NULL));
    CHECK(!is_shared(schema, NULL, "{'type':'object','properties':{'a':{'minimum':2}}}", NULL));
}

TEST(options_are_part_of_the_key)
{
    static const peg_schema_options options[] = {
        {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT7},
        {PEG_SCHEMA_OPTIONS_INIT, .format = PEG_FORMAT_ASSERT},
        {PEG_SCHEMA_OPTIONS_INIT, .base_uri = "http://x/"},
        {PEG_SCHEMA_OPTIONS_INIT, .check_defaults = true},
        {PEG_SCHEMA_OPTIONS_INIT, .max_depth = 10},
        {PEG_SCHEMA_OPTIONS_INIT, .max_subschemas = 10},
        {PEG_SCHEMA_OPTIONS_INIT, .max_pattern_bytes = 10},
    };
    const char *schema = "{'type':'string'}";

    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        CHECK(!is_shared(schema, NULL, schema, &options[i]));
        CHECK(is_shared(schema, &options[i], schema, &options[i]));
    }
}

TEST(schemas_with_documents_are_not_shared)
{
    peg_schema_docs *docs = peg_schema_docs_new();
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};

    CHECK(!is_shared("{'type':'string'}", &options, "{'type':'string'}", &options));
    peg_schema_docs_free(docs);
}

TEST(failures_are_told_as_by_compiling_and_not_kept)
{
    static const peg_schema_options small = {PEG_SCHEMA_OPTIONS_INIT, .max_bytes = 10};
    static const peg_schema_options shallow = {PEG_SCHEMA_OPTIONS_INIT, .max_depth = 2};
    static const struct {
        const char *text;
        const peg_schema_options *options;
        const char *code;
    } wrong[] = {{"{'type':'nope'}", NULL, "E_SCHEMA_KEYWORD"},
                 {"{'type':", NULL, "E_JSON_SYNTAX"},
                 {"{'type':'string'}", &small, "E_SCHEMA_TOO_LARGE"},
                 {"{'items':{'items':{'items':{}}}}", &shallow, "E_SCHEMA_TOO_LARGE"}};
    peg_schema_cache *cache = new_cache(LARGE);

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        for (int again = 0; again < 2; again++) {
            peg_schema *schema = NULL;
            peg_error error;

            CHECK(peg_schema_cache_compile(cache, peg__str(json(wrong[i].text)), wrong[i].options,
                                           &schema, &error) != PEG_OK);
            CHECK(schema == NULL);
            CHECK_STR(peg__str(error.code), wrong[i].code);
        }
    peg_schema_cache_free(cache);
}

TEST(a_schema_outlives_its_cache)
{
    peg_schema_cache *cache = new_cache(LARGE);
    peg_schema *schema = get(cache, "{'type':'string'}");
    peg_json_doc *doc = parsed("1");

    peg_schema_cache_free(cache);
    CHECK_INT(verdict_on(schema, peg_json_root(doc)), PEG_INVALID);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
    CHECK(peg_schema_cache_free(NULL) == NULL);
}

/* ---- what is dropped ------------------------------------------------------------------------- */

static peg_schema *get_numbered(peg_schema_cache *cache, int i)
{
    char text[64];

    snprintf(text, sizeof(text), "{'const':%d}", i);
    return get(cache, text);
}

TEST(the_least_recently_used_go_first_and_references_stay_good)
{
    peg_schema *measure = compiled("{'const':100}");
    /* Room for four, with what an entry takes besides. */
    peg_schema_cache *cache = new_cache(4 * (peg_schema_bytes(measure) + 200));
    peg_schema *first = get_numbered(cache, 100);
    peg_schema *second = get_numbered(cache, 101);
    peg_json_doc *doc = parsed("101");
    peg_schema *again;

    for (int i = 102; i < 120; i++) {
        peg_schema_unref(get_numbered(cache, i));
        peg_schema_unref(get_numbered(cache, 100)); /* used all the time: stays */
    }
    again = get_numbered(cache, 100);
    CHECK(again == first);
    peg_schema_unref(again);
    again = get_numbered(cache, 101);
    CHECK(again != second);
    CHECK_INT(verdict_on(second, peg_json_root(doc)), PEG_VALID);
    peg_schema_unref(again);
    peg_schema_unref(first);
    peg_schema_unref(second);
    peg_schema_unref(measure);
    peg_json_doc_free(doc);
    peg_schema_cache_free(cache);
}

TEST(a_cache_without_room_still_compiles)
{
    peg_schema_cache *cache = new_cache(1);
    peg_schema *a = get(cache, "true");
    peg_schema *b = get(cache, "true");

    CHECK(a != b);
    peg_schema_unref(a);
    peg_schema_unref(b);
    peg_schema_cache_free(cache);
}

/* ---- memory of many tools ---------------------------------------------------------------------
 */

/* Arguments of a tool as they are: some 1 KB of text. */
static const char tool[] =
    "{'type':'object','properties':{"
    "'query':{'type':'string','description':'What to search for, in the words of the user.',"
    "'minLength':1,'maxLength':400},"
    "'city':{'type':'string','description':'Name of the city, for example Berlin.'},"
    "'country':{'type':'string','description':'ISO 3166 code of the country.',"
    "'pattern':'^[A-Z]{2}$'},"
    "'unit':{'type':'string','enum':['celsius','fahrenheit','kelvin'],'default':'celsius'},"
    "'limit':{'type':'integer','minimum':1,'maximum':100,'default':10,"
    "'description':'How many results to return at most.'},"
    "'since':{'type':'string','format':'date-time','description':'Only results after this.'},"
    "'tags':{'type':'array','items':{'type':'string','maxLength':40},'maxItems':10,"
    "'uniqueItems':true},"
    "'options':{'type':'object','properties':{'verbose':{'type':'boolean','default':false},"
    "'language':{'type':'string','enum':['en','de','fr','es']}},'additionalProperties':false}"
    "},'required':['query','city'],'additionalProperties':false}";

TEST(a_tool_of_1_kb_takes_less_than_12_kb)
{
    peg_schema *schema = compiled(tool);
    const size_t bytes = peg_schema_bytes(schema);

    printf("# a tool of %zu bytes of schema takes %zu bytes\n", sizeof(tool) - 1, bytes);
    CHECK(bytes < 12000);
    peg_schema_unref(schema);
}

/* ---- threads
 * ------------------------------------------------------------------------------------- */

enum { N_THREADS = 4, N_ROUNDS = 300, N_SCHEMAS = 17 };

struct hammer {
    pthread_t thread;
    peg_schema_cache *cache;
    unsigned seed;
    bool failed;
};

/* Compiles and checks in an order of its own; every schema says its own number. */
static void *hammer(void *arg)
{
    struct hammer *h = arg;
    peg_checker *checker = NULL;

    h->failed = peg_checker_new(NULL, &checker, NULL) != PEG_OK;
    for (unsigned i = 0; i < N_ROUNDS && !h->failed; i++) {
        const unsigned number = (i * 7 + h->seed * 5) % N_SCHEMAS;
        const peg_json value = {.kind = PEG_JSON_INTEGER, .u.number = number};
        peg_schema *schema = NULL;
        char text[64];

        snprintf(text, sizeof(text), "{\"const\":%u,\"pattern\":\"^a+b\"}", number);
        h->failed = peg_schema_cache_compile(h->cache, peg__str(text), NULL, &schema, NULL) ||
                    peg_schema_check(schema, checker, &value) != PEG_VALID;
        peg_schema_unref(schema);
    }
    peg_checker_free(checker);
    return NULL;
}

static void hammer_cache(size_t max_bytes)
{
    struct hammer hammers[N_THREADS];
    peg_schema_cache *cache = new_cache(max_bytes);

    for (unsigned i = 0; i < N_THREADS; i++) {
        hammers[i] = (struct hammer){.cache = cache, .seed = i};
        CHECK_INT(pthread_create(&hammers[i].thread, NULL, hammer, &hammers[i]), 0);
    }
    for (unsigned i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_join(hammers[i].thread, NULL), 0);
    for (unsigned i = 0; i < N_THREADS; i++)
        CHECK(!hammers[i].failed);
    peg_schema_cache_free(cache);
}

TEST(threads_share_a_cache_with_room_for_all)
{
    hammer_cache(LARGE);
}

TEST(threads_share_a_cache_that_drops_all_the_time)
{
    hammer_cache(6000);
}

/* ---- memory
 * ------------------------------------------------------------------------------------------ */

TORTURE(caching_survives_any_allocation_failure)
{
    peg_schema_cache *cache = NULL;
    peg_schema *first = NULL;
    peg_schema *second = NULL;
    peg_status status = peg_schema_cache_new(LARGE, &cache, NULL);

    if (!status)
        status = peg_schema_cache_compile(cache, peg__str("{\"pattern\":\"^(a|b)\"}"), NULL, &first,
                                          NULL);
    if (!status)
        status = peg_schema_cache_compile(cache, peg__str("{\"pattern\":\"^(a|b)\"}"), NULL,
                                          &second, NULL);
    peg_schema_unref(first);
    peg_schema_unref(second);
    peg_schema_cache_free(cache);
    return status;
}
