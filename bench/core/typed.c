/* SPDX-License-Identifier: Apache-2.0 */

/* Structs from JSON: what `pegboard generate` writes, beside the same walk by hand. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "types.h"

enum { N_HITS = 100 };

struct typed {
    const peg_json *args;
    const peg_json *result;
    peg_encoder *encoder;
    search_find_result decoded; /* for encoding */
    int64_t sum;                /* so that nothing is optimised away */
};

/* ---- arguments ---------------------------------------------------------------------------- */

static void decode_args(void *user)
{
    struct typed *t = user;
    peg_arena *arena = peg_arena_new();
    search_find_args args;

    must(search_find_args_decode(t->args, arena, &args, NULL), "arguments");
    t->sum += args.limit + (int64_t)args.tags.len + args.from.day;
    peg_arena_free(arena);
}

/* As careful as a handler by hand is: kinds are those of the schema, what is optional is asked for.
 */
static void walk_args(void *user)
{
    struct typed *t = user;
    peg_arena *arena = peg_arena_new();
    search_find_args args;
    const peg_json *value;
    peg_str *tags;
    size_t n = 0;

    memset(&args, 0, sizeof(args));
    args.query = peg_json_str(peg_json_get(t->args, "query"));
    value = peg_json_get(t->args, "limit");
    args.has_limit = value && peg_json_int64(value, &args.limit);
    value = peg_json_get(t->args, "tags");
    args.has_tags = value != NULL;
    tags = peg_arena_alloc(arena, peg_json_len(value), sizeof(*tags));
    PEG_JSON_EACH_ITEM (value, item)
        tags[n++] = peg_json_str(item);
    args.tags.items = tags;
    args.tags.len = n;
    value = peg_json_get(t->args, "exact");
    args.has_exact = value != NULL;
    args.exact = peg_json_is_true(value);
    value = peg_json_get(t->args, "from");
    args.has_from = value != NULL;
    args.from.has_day = peg_json_int64(peg_json_get(value, "day"), &args.from.day);
    args.from.has_month = peg_json_int64(peg_json_get(value, "month"), &args.from.month);
    t->sum += args.limit + (int64_t)args.tags.len + args.from.day;
    peg_arena_free(arena);
}

/* ---- a result ----------------------------------------------------------------------------- */

static void decode_result(void *user)
{
    struct typed *t = user;
    peg_arena *arena = peg_arena_new();
    search_find_result result;

    must(search_find_result_decode(t->result, arena, &result, NULL), "result");
    t->sum += (int64_t)result.hits.len + result.hits.items[0].id;
    peg_arena_free(arena);
}

static search_find_result_hits_item_kind walk_kind(const peg_json *value)
{
    static const char *const names[] = {"page", "person", "place"};
    const peg_str text = peg_json_str(value);

    for (unsigned i = 0; i < 3; i++) {
        if (text.len == strlen(names[i]) && memcmp(text.ptr, names[i], text.len) == 0)
            return (search_find_result_hits_item_kind)i;
    }
    return SEARCH_FIND_RESULT_HITS_ITEM_KIND_PAGE;
}

static void walk_result(void *user)
{
    struct typed *t = user;
    peg_arena *arena = peg_arena_new();
    const peg_json *list = peg_json_get(t->result, "hits");
    search_find_result_hits_item *hits = peg_arena_alloc(arena, peg_json_len(list), sizeof(*hits));
    size_t n = 0;

    PEG_JSON_EACH_ITEM (list, item) {
        const peg_json *kind = peg_json_get(item, "kind");

        must(peg_json_int64(peg_json_get(item, "id"), &hits[n].id) ? PEG_OK : PEG_ESCHEMA, "id");
        hits[n].title = peg_json_str(peg_json_get(item, "title"));
        hits[n].score = peg_json_double(peg_json_get(item, "score"));
        hits[n].has_kind = kind != NULL;
        hits[n].kind = walk_kind(kind);
        n++;
    }
    t->sum += (int64_t)n + hits[0].id;
    peg_arena_free(arena);
}

static void encode_result(void *user)
{
    struct typed *t = user;
    peg_str text;

    peg_encoder_clear(t->encoder);
    search_find_result_encode(&t->decoded, t->encoder);
    must(peg_encoder_text(t->encoder, &text, NULL), "text");
    t->sum += (int64_t)text.len;
}

/* What a handler does that builds a value for peg_call_reply_json(). */
static void build_result(void *user)
{
    static const char *const names[] = {"page", "person", "place"};
    struct typed *t = user;
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    char *text = NULL;

    peg_json_open_object(b);
    peg_json_add_key(b, peg_cstr("hits"));
    peg_json_open_array(b);
    for (size_t i = 0; i < t->decoded.hits.len; i++) {
        const search_find_result_hits_item *hit = &t->decoded.hits.items[i];

        peg_json_open_object(b);
        peg_json_add_key(b, peg_cstr("id"));
        peg_json_add_integer(b, hit->id);
        peg_json_add_key(b, peg_cstr("title"));
        peg_json_add_string(b, hit->title);
        peg_json_add_key(b, peg_cstr("score"));
        peg_json_add_double(b, hit->score);
        peg_json_add_key(b, peg_cstr("kind"));
        peg_json_add_string(b, peg_cstr(names[hit->kind]));
        peg_json_close(b);
    }
    peg_json_close(b);
    peg_json_close(b);
    must(peg_json_builder_finish(b, &doc, NULL), "value");
    must(peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &text, NULL, NULL), "text");
    t->sum += text[0];
    peg_free(text);
    peg_json_doc_free(doc);
}

/* ---- all ---------------------------------------------------------------------------------- */

static peg_str make_hits(peg_arena *arena)
{
    static const char *const kinds[] = {"page", "person", "place"};
    char *text = peg_arena_alloc(arena, N_HITS + 1, 128);
    size_t n;

    must(text ? PEG_OK : PEG_ENOMEM, "hits");
    n = (size_t)sprintf(text, "{\"hits\":[");
    for (int i = 0; i < N_HITS; i++)
        n += (size_t)sprintf(text + n,
                             "%s{\"id\":%d,\"title\":\"what was found at %d\",\"score\":0.%d,"
                             "\"kind\":\"%s\"}",
                             i ? "," : "", i * 7919, i, 100 + i, kinds[i % 3]);
    n += (size_t)sprintf(text + n, "]}");
    return (peg_str){text, n};
}

void bench_typed(const struct bench *bench)
{
    struct typed t = {.encoder = peg_encoder_new()};
    peg_arena *arena = peg_arena_new();

    must(arena && t.encoder ? PEG_OK : PEG_ENOMEM, "memory");
    must(peg_arena_parse(arena, peg_cstr(call_args), &t.args, NULL), "arguments");
    must(peg_arena_parse(arena, make_hits(arena), &t.result, NULL), "hits");
    must(search_find_result_decode(t.result, arena, &t.decoded, NULL), "result");
    printf("typed tools\n");
    report(bench, "typed", "arguments of 5 members, generated",
           fastest(bench, 2000, decode_args, &t), "ns");
    report(bench, "typed", "arguments of 5 members, by hand", fastest(bench, 2000, walk_args, &t),
           "ns");
    report(bench, "typed", "result of 100 structs, generated",
           fastest(bench, 200, decode_result, &t), "ns");
    report(bench, "typed", "result of 100 structs, by hand", fastest(bench, 200, walk_result, &t),
           "ns");
    report(bench, "typed", "text of 100 structs, generated", fastest(bench, 200, encode_result, &t),
           "ns");
    report(bench, "typed", "text of 100 structs, by a builder",
           fastest(bench, 200, build_result, &t), "ns");
    peg_encoder_free(t.encoder);
    peg_arena_free(arena);
}
