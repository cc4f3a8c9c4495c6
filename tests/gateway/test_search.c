/* SPDX-License-Identifier: Apache-2.0 */

/* Searching, and against a search that reads everything: words are split and weighed by rules of
 * its own here, so that both would have to be wrong in the same way. */

#include "gateway/search.h"

#include "gateway/info.h"
#include "gateway/search_internal.h"
#include "t.h"

#include "requests.h"
#include "words.h"

/* ---- fixture: a catalog by hand ----------------------------------------------------------------
 */

enum { MAX = 700 };

struct shelf {
    struct gw_toolset *list[MAX];
    size_t n;
    struct gw_toolset *before[MAX];
    size_t n_before;
    struct gw_search_index *index;
    struct peg__arena arena;
    struct gw_search_result result;
};

static struct shelf s;

static void shelf_reset(void)
{
    s = (struct shelf){.n = 0};
}

/* The next catalog is the list as it is now. */
static void shelf_publish(void)
{
    struct gw_search_index *index;

    qsort(s.list, s.n, sizeof(*s.list), words_compare);
    index = gw_search_index_next(s.index, 0, (struct gw_toolsets){s.before, s.n_before},
                                 (struct gw_toolsets){s.list, s.n});
    CHECK(index != NULL);
    gw_search_index_unref(s.index);
    s.index = index;
    for (size_t i = 0; i < s.n_before; i++)
        gw_toolset_unref(s.before[i]);
    for (size_t i = 0; i < s.n; i++)
        s.before[i] = gw_toolset_ref(s.list[i]);
    s.n_before = s.n;
}

static void shelf_free(void)
{
    for (size_t i = 0; i < s.n; i++)
        gw_toolset_unref(s.list[i]);
    for (size_t i = 0; i < s.n_before; i++)
        gw_toolset_unref(s.before[i]);
    gw_search_index_unref(s.index);
    peg__arena_free(&s.arena);
}

static void shelf_add(const char *name, const char *description, const char *tag)
{
    struct req req = {0};

    req_init(&req, name);
    req.msg.description = req_text(description);
    if (tag)
        req_tag(&req, tag);
    s.list[s.n++] = req_toolset(&req);
}

static peg_status look_for(const struct gw_search_query *query)
{
    const struct gw_snapshot snapshot = {.toolsets = s.list, .n = s.n, .index = s.index};

    peg__arena_reset(&s.arena);
    return gw_search(&snapshot, query, &s.arena, &s.result, NULL);
}

static peg_str found(const char *text)
{
    static char names[512];
    const struct gw_search_query query = {.text = peg__str(text), .limit = 100};
    size_t len = 0;

    CHECK_INT(look_for(&query), PEG_OK);
    names[0] = '\0';
    for (size_t i = 0; i < s.result.n && len < 400; i++)
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s ",
                                s.result.hits[i].toolset->name.ptr);
    return peg__str(names);
}

/* ---- words -------------------------------------------------------------------------------------
 */

static peg_str folded(const char *text)
{
    static char buffer[256];

    gw_fold(peg__str(text), buffer);
    return peg__strn(buffer, strlen(text));
}

TEST(folding_keeps_lengths_and_knows_some_alphabets)
{
    CHECK_STR(folded("GET user-ID"), "get user-id");
    CHECK_STR(folded("\xC3\x9C"
                     "ber \xC3\x97 \xC3\x9F"),
              "\xC3\xBC"
              "ber \xC3\x97 \xC3\x9F");
    CHECK_STR(folded("\xD0\x9F\xD0\x9E\xD0\x81"), "\xD0\xBF\xD0\xBE\xD1\x91");
    CHECK_STR(folded("\xCE\xA9\xC5\xBD\xC4\x80"), "\xCF\x89\xC5\xBE\xC4\x81");
    CHECK_STR(folded("\xE2\x82\xAC\xF0\x9F\x98\x80"), "\xE2\x82\xAC\xF0\x9F\x98\x80");
    CHECK_STR(folded("\xC3"), "\xC3"); /* not UTF-8, and not read behind */
    CHECK_STR(folded("A\xE1\xBA"), "a\xE1\xBA");
}

TEST(folding_knows_the_alphabets_that_have_two_cases)
{
    CHECK_STR(folded("ΟΔΌΣ Ύδωρ Ϊ"), "οδόσ ύδωρ ϊ");
    CHECK_STR(folded("οδός"), "οδόσ"); /* the capital of both is one */
    CHECK_STR(folded("ȘTIRI ȚARĂ"), "știri țară");
    CHECK_STR(folded("ĐẶT HÀNG ƠƯ"), "đặt hàng ơư");
    CHECK_STR(folded("ƏLİ Ÿ"), "əlİ ÿ"); /* a small one of İ has another length */
    CHECK_STR(folded("ҚАЗАҚ ӘҒӨ ЋЂ"), "қазақ әғө ћђ");
    CHECK_STR(folded("ՀԱՅ ＡＺ"), "հայ ａｚ");
    CHECK_STR(folded("日本 ǅ ƛ ÷×"), "日本 ǆ ƛ ÷×");
}

TEST(words_are_split_at_what_is_no_letter_and_at_camels)
{
    peg_str rest = peg__str(" getHTTPStatus2xx, for\xC3\xA9t_x ");
    peg_str word;
    peg_str piece;

    CHECK(gw_next_word(&rest, &word));
    CHECK_STR(word, "getHTTPStatus2xx");
    CHECK(gw_next_piece(&word, &piece));
    CHECK_STR(piece, "get");
    CHECK(gw_next_piece(&word, &piece));
    CHECK_STR(piece, "HTTP");
    CHECK(gw_next_piece(&word, &piece));
    CHECK_STR(piece, "Status2xx");
    CHECK(!gw_next_piece(&word, &piece));
    CHECK(gw_next_word(&rest, &word));
    CHECK_STR(word, "for\xC3\xA9t");
    CHECK(gw_next_word(&rest, &word));
    CHECK_STR(word, "x");
    CHECK(!gw_next_word(&rest, &word));
}

TEST(stems_are_those_of_plurals_and_verbs)
{
    static const char *const pairs[][2] = {
        {"cities", "city"},
        {"boxes", "box"},
        {"searches", "search"},
        {"tools", "tool"},
        {"searching", "search"},
        {"searched", "search"},
        {"running", "run"},
        {"caching", "cach"},
        {"cache", "cach"},
        {"status", "status"},
        {"class", "class"},
        {"classes", "class"},
        {"analysis", "analysis"},
        {"string", "string"},
        {"is", "is"},
        {"bed", "bed"},
        {"types", "typ"},
        {"type", "typ"},
        {"\xC3\xA9s", "\xC3\xA9s"},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char stem[GW_WORD_BYTES];
        const size_t n = gw_stem(peg__str(pairs[i][0]), stem);

        CHECK_STR(peg__strn(stem, n), pairs[i][1]);
        CHECK(memcmp(pairs[i][0], stem, gw_stem_prefix(peg__strn(stem, n))) == 0);
    }
}

TEST(rarity_is_a_logarithm)
{
    CHECK_INT(gw_rarity(1, 1) * 1e9, 693147180);
    CHECK_INT(gw_rarity(10000, 1) * 1e9, 9210440366);
    CHECK_INT(gw_rarity(3, 2) * 1e9, 916290731);
}

/* ---- finding -----------------------------------------------------------------------------------
 */

TEST(names_come_before_tags_before_descriptions)
{
    shelf_reset();
    shelf_add("a.other", "about invoices", NULL);
    shelf_add("b.invoices", "x", NULL);
    shelf_add("c.other", "x", "invoices");
    shelf_add("d.nothing", "x", NULL);
    shelf_publish();

    CHECK_STR(found("invoices"), "b.invoices c.other a.other ");
    CHECK_INT(s.result.total, 3);
    shelf_free();
}

TEST(tools_and_their_arguments_are_found)
{
    struct req req = {0};

    shelf_reset();
    req_empty(&req, "x");
    req_tool(&req, "first", "{}");
    req_tool(&req, "sendMail", "{\"properties\":{\"recipient_address\":{}}}")->description =
        req_text("Posts a letter");
    s.list[s.n++] = req_toolset(&req);
    shelf_publish();

    CHECK_STR(found("mail"), "x ");
    CHECK_INT(s.result.hits[0].n_tools, 1);
    CHECK_STR(s.result.hits[0].tools[0]->name, "sendMail");
    CHECK_STR(found("address"), "x ");
    CHECK_STR(found("letters"), "x ");
    CHECK_STR(found("sendmail"), "x ");
    CHECK_STR(found("properties"), "");
    shelf_free();
}

TEST(tools_of_a_hit_are_the_best_eight_in_order)
{
    struct req req = {0};
    static char names[12][16];

    shelf_reset();
    req_empty(&req, "x");
    for (unsigned i = 0; i < 12; i++) {
        snprintf(names[i], sizeof(names[i]), i == 7 ? "rate%u" : "other%u", i);
        req_tool(&req, names[i], "{}")->description = req_text(i == 3 ? "no" : "the rate");
    }
    s.list[s.n++] = req_toolset(&req);
    shelf_publish();

    found("rate");
    CHECK_INT(s.result.hits[0].n_tools, 8);
    CHECK_STR(s.result.hits[0].tools[0]->name, "rate7");
    CHECK_STR(s.result.hits[0].tools[1]->name, "other0");
    CHECK_STR(s.result.hits[0].tools[4]->name, "other4");
    shelf_free();
}

TEST(prefixes_and_stems_match)
{
    shelf_reset();
    shelf_add("x", "lists all cities", NULL);
    shelf_publish();

    CHECK_STR(found("cit"), "x ");
    CHECK_STR(found("city"), "x ");
    CHECK_STR(found("listing"), "x ");
    CHECK_STR(found("cats"), "");
    shelf_free();
}

TEST(every_toolset_that_contains_the_query_is_found)
{
    shelf_reset();
    shelf_add("wea-THER", "x", NULL);
    shelf_add("y", "Of Rate: no exchange", NULL);
    shelf_add("z", "x", "Public Data");
    shelf_publish();

    CHECK_STR(found("a-th"), "wea-THER ");
    CHECK_STR(found("ATHER"), "");
    CHECK_STR(found("F RATE: N"), "y ");
    CHECK_STR(found(": "), "y ");
    CHECK_STR(found("lic d"), "z ");
    CHECK_STR(found("ubli"), "z ");
    CHECK_STR(found(" data"), "z ");
    CHECK_STR(found("e:"), "y ");
    shelf_free();
}

TEST(what_contains_the_query_in_another_case_is_found_in_every_alphabet)
{
    shelf_reset();
    shelf_add("a", "Đặt hàng và giao hàng", NULL);
    shelf_add("b", "Βρίσκει την οδό και τους δρόμους", NULL);
    shelf_add("c", "x", "Știri din țară");
    shelf_publish();

    CHECK_STR(found("ĐẶT HÀNG"), "a ");
    CHECK_STR(found("ẶT"), "a ");
    CHECK_STR(found("ΟΔΌ"), "b ");
    CHECK_STR(found("ΔΡΌΜΟΥΣ"), "b ");
    CHECK_STR(found("DIN ȚARĂ"), "c ");
    shelf_free();
}

TEST(an_exact_name_is_first)
{
    shelf_reset();
    shelf_add("mail", "x", NULL);
    shelf_add("a.mail.mail", "mail mail", "mail");
    shelf_publish();

    CHECK_STR(found("Mail"), "mail a.mail.mail ");
    shelf_free();
}

TEST(equal_scores_stand_by_name)
{
    shelf_reset();
    shelf_add("c", "same words", NULL);
    shelf_add("a", "same words", NULL);
    shelf_add("b", "same words", NULL);
    shelf_publish();

    CHECK_STR(found("same"), "a b c ");
    shelf_free();
}

TEST(tags_filter_and_the_limit_cuts)
{
    char tag[] = "eu";
    char *tags[] = {tag};
    struct gw_search_query query = {
        .text = peg__str("same"), .tags = tags, .n_tags = 1, .limit = 2};

    shelf_reset();
    shelf_add("a", "same", "us");
    shelf_add("b", "same", "eu");
    shelf_add("c", "same", "eu");
    shelf_add("d", "same", "eu");
    shelf_publish();
    CHECK_INT(look_for(&query), PEG_OK);

    CHECK_INT(s.result.n, 2);
    CHECK_INT(s.result.total, 3);
    CHECK_STR(s.result.hits[0].toolset->name, "b");
    shelf_free();
}

TEST(queries_of_all_kinds_of_bytes_find_nothing_and_break_nothing)
{
    static const char *const queries[] = {
        " ",
        "%",
        "\x01",
        "\x7F",
        "\xC3\x9F",
        "\xF0\x9F\x98\x80",
        "((((",
        "a\nb",
        ".*",
        "\\",
        "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a",
        "-----------------------------------------------------------------------------------",
        "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
    };

    shelf_reset();
    shelf_add("x", "", NULL);
    shelf_publish();

    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
        CHECK_STR(found(queries[i]), "");
    shelf_free();
}

TEST(an_empty_catalog_has_nothing)
{
    shelf_reset();
    shelf_publish();

    CHECK_STR(found("x"), "");
    CHECK_INT(s.result.total, 0);
    shelf_free();
}

TEST(a_snapshot_without_an_index_is_searched_all_the_same)
{
    shelf_reset();
    shelf_add("mail", "x", NULL);

    CHECK_STR(found("mai"), "mail ");
    shelf_free();
}

/* ---- the same by reading everything ------------------------------------------------------------
 */

enum { O_WORDS = 400, O_BYTES = 80 };

struct o_words {
    char word[O_WORDS][O_BYTES];
    size_t n;
};

static bool o_is_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c & 0x80);
}

static void o_lower(char *text)
{
    gw_fold(peg__str(text), text);
}

static void o_add(struct o_words *words, const char *from, size_t len)
{
    CHECK(words->n < O_WORDS);
    CHECK(len < O_BYTES);
    memcpy(words->word[words->n], from, len);
    words->word[words->n][len] = '\0';
    o_lower(words->word[words->n++]);
}

/* Pieces, and if `wholes` whole words too. */
static void o_split(const char *text, bool wholes, struct o_words *words)
{
    words->n = 0;
    while (*text) {
        size_t len = 0;
        size_t start = 0;

        while (*text && !o_is_word(*text))
            text++;
        while (text[len] && o_is_word(text[len]))
            len++;
        if (len && wholes)
            o_add(words, text, len);
        for (size_t i = 1; i <= len; i++) {
            const bool is_capital = i < len && text[i] >= 'A' && text[i] <= 'Z';
            const bool after_capital = text[i - 1] >= 'A' && text[i - 1] <= 'Z';
            const bool before_small = i + 1 < len && text[i + 1] >= 'a' && text[i + 1] <= 'z';

            if (i == len || (is_capital && (!after_capital || before_small))) {
                o_add(words, text + start, i - start);
                start = i;
            }
        }
        text += len;
    }
}

static float o_quality(const char *word, const char *term)
{
    char a[GW_WORD_BYTES];
    char b[GW_WORD_BYTES];
    const size_t na = gw_stem(peg__str(word), a);
    const size_t nb = gw_stem(peg__str(term), b);

    if (strcmp(word, term) == 0)
        return 1.0F;
    if (na == nb && memcmp(a, b, na) == 0)
        return 0.85F;
    if (strlen(word) >= 2 && strncmp(word, term, strlen(word)) == 0)
        return 0.4F + 0.4F * (float)strlen(word) / (float)strlen(term);
    return 0;
}

/* Every distinct word of one place (a toolset, or a tool) with the sum of the weights of where it
 * stands; the best match of them. */
struct o_place {
    struct o_words words;
    float weight[O_WORDS];
    unsigned seen[O_WORDS];
};

static void o_read(struct o_place *place, const char *text, float weight, unsigned bit)
{
    static struct o_words words;

    o_split(text, true, &words);
    for (size_t i = 0; i < words.n; i++) {
        size_t at = 0;

        while (at < place->words.n && strcmp(place->words.word[at], words.word[i]) != 0)
            at++;
        if (at == place->words.n) {
            o_add(&place->words, words.word[i], strlen(words.word[i]));
            place->weight[at] = 0;
            place->seen[at] = 0;
        }
        if (!(place->seen[at] & bit))
            place->weight[at] += weight;
        place->seen[at] |= bit;
    }
}

static float o_best(const struct o_place *place, const char *word)
{
    float best = 0;

    for (size_t i = 0; i < place->words.n; i++) {
        const float value = o_quality(word, place->words.word[i]) * place->weight[i];

        best = value > best ? value : best;
    }
    return best;
}

static float o_main(const struct gw_toolset *toolset, const char *word)
{
    static struct o_place place;

    place.words.n = 0;
    o_read(&place, toolset->name.ptr, 8, 1);
    for (size_t i = 0; i < toolset->n_tags; i++)
        o_read(&place, toolset->tags[i].ptr, 5, 2);
    o_read(&place, toolset->description.ptr, 2, 4);
    return o_best(&place, word);
}

static float o_tool(const struct gw_tool *tool, const char *word)
{
    static struct o_place place;
    peg_json_doc *doc = NULL;
    const peg_json *properties;

    place.words.n = 0;
    o_read(&place, tool->name.ptr, 4, 1);
    o_read(&place, tool->description.ptr, 1.5F, 4);
    if (peg_json_parse(tool->input_schema, NULL, &doc, NULL))
        T_FAIL("no JSON");
    properties = peg_json_get(peg_json_root(doc), "properties");
    if (properties) {
        PEG_JSON_EACH_MEMBER (properties, key) {
            char name[O_BYTES];

            snprintf(name, sizeof(name), "%.*s", PEG_ARG(peg_json_str(key)));
            o_read(&place, name, 1, 8);
        }
    }
    peg_json_doc_free(doc);
    return o_best(&place, word);
}

static bool o_contains(const char *text, const char *query)
{
    char a[512];
    char b[512];

    snprintf(a, sizeof(a), "%s", text);
    snprintf(b, sizeof(b), "%s", query);
    o_lower(a);
    o_lower(b);
    return strstr(a, b) != NULL;
}

static double o_whole(const struct gw_toolset *toolset, const char *query)
{
    double score = 0;
    bool in_tag = false;

    for (size_t i = 0; i < toolset->n_tags; i++)
        in_tag = in_tag || o_contains(toolset->tags[i].ptr, query);
    if (o_contains(toolset->name.ptr, query)) {
        char start[512];

        snprintf(start, sizeof(start), "%.*s", (int)strlen(query), toolset->name.ptr);
        score += 6;
        if (o_contains(start, query))
            score += toolset->name.len == strlen(query) ? 14 : 2;
    }
    score += in_tag ? 3 : 0;
    score += o_contains(toolset->description.ptr, query) ? 1.5 : 0;
    return score;
}

struct o_hit {
    const struct gw_toolset *toolset;
    double score;
};

static bool o_differ(double a, double b, double by)
{
    return a - b > by || b - a > by;
}

static struct o_hit o_hits[MAX];
static size_t o_n;

static int o_compare(const void *x, const void *y)
{
    const struct o_hit *a = x;
    const struct o_hit *b = y;

    if (o_differ(a->score, b->score, 1e-9))
        return a->score > b->score ? -1 : 1;
    return strcmp(a->toolset->name.ptr, b->toolset->name.ptr);
}

static void o_unique(struct o_words *words)
{
    size_t n = 0;

    for (size_t i = 0; i < words->n; i++) {
        size_t at = 0;

        while (at < n && strcmp(words->word[at], words->word[i]) != 0)
            at++;
        if (at == n)
            memmove(words->word[n++], words->word[i], O_BYTES);
    }
    words->n = n;
}

static void o_search(const char *query)
{
    static struct o_words words;
    static float value[MAX];
    static double sum[MAX];
    static unsigned matched[MAX];

    o_split(query, false, &words);
    o_unique(&words);
    memset(sum, 0, sizeof(sum));
    memset(matched, 0, sizeof(matched));
    for (size_t w = 0; w < words.n; w++) {
        unsigned n_found = 0;

        for (size_t i = 0; i < s.n; i++) {
            float tool = 0;

            for (size_t t = 0; t < s.list[i]->n_tools; t++) {
                const float of_tool = o_tool(&s.list[i]->tools[t], words.word[w]);

                tool = of_tool > tool ? of_tool : tool;
            }
            value[i] = o_main(s.list[i], words.word[w]) + tool;
            n_found += value[i] > 0;
        }
        for (size_t i = 0; i < s.n; i++) {
            if (value[i] > 0) {
                sum[i] += gw_rarity(s.n, n_found) * (double)value[i];
                matched[i]++;
            }
        }
    }
    o_n = 0;
    for (size_t i = 0; i < s.n; i++) {
        const double whole = o_whole(s.list[i], query);
        const double score =
            whole + (matched[i] ? sum[i] * (0.5 + 0.5 * matched[i] / (double)words.n) : 0);

        if (score > 0)
            o_hits[o_n++] = (struct o_hit){s.list[i], score};
    }
    qsort(o_hits, o_n, sizeof(*o_hits), o_compare);
}

static void compare_searches(const char *query)
{
    const struct gw_search_query asked = {.text = peg__str(query), .limit = MAX};

    o_search(query);
    CHECK_INT(look_for(&asked), PEG_OK);
    if (s.result.n != o_n)
        T_FAIL("\"%s\": %zu are found, expected %zu", query, s.result.n, o_n);
    for (size_t i = 0; i < o_n; i++) {
        if (o_differ(s.result.hits[i].score, o_hits[i].score, 1e-6))
            T_FAIL("\"%s\": hit %zu is %s with %f, expected %s with %f", query, i,
                   s.result.hits[i].toolset->name.ptr, s.result.hits[i].score,
                   o_hits[i].toolset->name.ptr, o_hits[i].score);
    }
}

/* A piece of some text of the catalog, or words. */
static void make_query(char *query, size_t size)
{
    const struct gw_toolset *toolset = s.list[words_random((uint32_t)s.n)];
    const peg_str texts[] = {toolset->name, toolset->description,
                             toolset->n_tags ? toolset->tags[0] : toolset->name};
    const peg_str text = texts[words_random(3)];
    size_t start = words_random((uint32_t)text.len + 1);
    size_t len = words_random(12) + 1;

    if (words_random(2) || text.len == 0) {
        words_text(query, size, 3);
        return;
    }
    start = peg__utf8_cut(text.ptr, start);
    len = start + len > text.len ? text.len - start : len;
    len = peg__utf8_cut(text.ptr + start, len);
    snprintf(query, size, "%.*s", (int)len, text.ptr + start);
    if (!*query)
        snprintf(query, size, "x");
}

TEST(searches_find_what_reading_everything_finds)
{
    char query[300];

    shelf_reset();
    words_state = 20240229;
    for (unsigned i = 0; i < 60; i++)
        s.list[s.n++] = words_make(i, 5);
    shelf_publish();
    for (unsigned i = 0; i < t_rounds(300); i++) {
        make_query(query, sizeof(query));
        compare_searches(query);
    }
    shelf_free();
}

/* Merges what a worker would. */
static void merge_now(void)
{
    struct gw_segment *merged;
    struct gw_search_index *index;
    unsigned first;

    if (!gw_search_index_wants_merge(s.index, &first))
        return;
    merged = gw_search_index_merge(s.index, first, s.index->n_parts);
    index = gw_search_index_replace(s.index, first, s.index->n_parts, merged,
                                    (struct gw_toolsets){s.list, s.n});
    gw_segment_unref(merged);
    gw_search_index_unref(s.index);
    s.index = index;
}

static void change_something(unsigned number)
{
    const uint32_t at = words_random((uint32_t)s.n + 1);

    if (at < s.n && words_random(3) == 0) {
        gw_toolset_unref(s.list[at]);
        s.list[at] = s.list[--s.n];
    } else {
        s.list[s.n++] = words_make(number, 3);
    }
}

TEST(an_index_that_went_through_many_changes_finds_the_same)
{
    char query[300];

    shelf_reset();
    words_state = 7;
    for (unsigned i = 0; i < 500; i++) {
        change_something(i);
        shelf_publish();
        if (words_random(10) == 0)
            merge_now();
        CHECK(s.index->n_parts < 16);
        if (s.n && i % 10 == 0) {
            make_query(query, sizeof(query));
            compare_searches(query);
        }
    }
    shelf_free();
}

TORTURE(indexing_and_searching_survive_any_allocation_failure)
{
    const struct gw_search_query query = {.text = peg__str("search the cities"), .limit = 5};
    struct gw_toolset *list[6];
    struct gw_search_index *index = NULL;
    struct gw_search_index *next = NULL;
    struct gw_snapshot snapshot = {.toolsets = list, .n = 6};
    struct gw_search_result result;
    struct peg__arena arena = {0};
    peg_status status = PEG_ENOMEM;

    peg__mem_fail_at(0);
    words_state = 3;
    for (unsigned i = 0; i < 6; i++)
        list[i] = words_make(i, 2);
    qsort(list, 6, sizeof(*list), words_compare);
    {
        static unsigned nth; /* grows with each run, as that of the harness does */

        peg__mem_fail_at(++nth);
    }
    index =
        gw_search_index_next(NULL, 0, (struct gw_toolsets){.n = 0}, (struct gw_toolsets){list, 4});
    if (index)
        next = gw_search_index_next(index, 0, (struct gw_toolsets){list, 4},
                                    (struct gw_toolsets){list + 1, 5});
    snapshot.index = next;
    if (next)
        status = gw_search(&snapshot, &query, &arena, &result, NULL);
    peg__mem_fail_at(0);
    peg__arena_free(&arena);
    gw_search_index_unref(index);
    gw_search_index_unref(next);
    for (unsigned i = 0; i < 6; i++)
        gw_toolset_unref(list[i]);
    return status;
}
