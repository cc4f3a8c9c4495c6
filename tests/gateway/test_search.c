/* SPDX-License-Identifier: Apache-2.0 */

/* Searching, and against a search that reads everything: words are split and weighed by rules of
 * its own here, so that both would have to be wrong in the same way. */

#include "gateway/search/search.h"

#include "gateway/rpc/rpc.h"
#include "gateway/search/internal.h"
#include "t.h"

#include "random_words.h"
#include "requests.h"

/* ---- fixture: a catalog by hand ----------------------------------------------------------------
 */

enum { MAX = 2500 };

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
    struct gw_language language;

    CHECK(gw_language_find("english", &language));
    s = (struct shelf){.index = gw_search_index_new(language)};
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

static peg_str tokens_of(const char *text)
{
    static char list[256];
    struct gw_keywords tokens = {.rest = peg__str(text)};
    size_t len = 0;
    peg_str token;

    list[0] = '\0';
    while (gw_next_keyword(&tokens, &token))
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%.*s ", PEG_ARG(token));
    return peg__str(list);
}

TEST(words_are_split_at_what_is_no_letter_and_at_camels)
{
    CHECK_STR(tokens_of(" getHTTPStatus2xx, for\xC3\xA9t_x "),
              "get http status xx gethttpstatus2xx for\xC3\xA9t x ");
    CHECK_STR(tokens_of("snake_case-and.dots"), "snake case and dots ");
    CHECK_STR(tokens_of("rate7 500 7up"), "rate rate7 500 up 7up ");
    CHECK_STR(tokens_of("ABC aB"), "abc a b ab ");
    CHECK_STR(tokens_of(""), "");
    CHECK_STR(tokens_of(" -- "), "");
}

TEST(long_words_are_cut_between_characters)
{
    char text[200];
    peg_str tokens;

    memset(text, 'x', sizeof(text));
    memcpy(text + 63, "\xC3\xA9", 2);
    text[150] = '\0';
    tokens = tokens_of(text);
    CHECK_INT(tokens.len, 63 + 1);
}

TEST(punctuation_of_other_alphabets_ends_words)
{
    peg_str rest = peg__str("“don’t” 天気、予報。x—y");
    const char *const expected[] = {"don", "t", "天気", "予報", "x", "y"};
    peg_str word;

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        CHECK(gw_next_word(&rest, &word));
        CHECK_STR(word, expected[i]);
    }
    CHECK(!gw_next_word(&rest, &word));
}

static struct gw_stemmer *stemmer_of(const char *name)
{
    struct gw_language language;
    struct gw_stemmer *stemmer;

    CHECK(gw_language_find(name, &language));
    stemmer = gw_stemmer_new(language);
    CHECK(stemmer != NULL);
    return stemmer;
}

TEST(stems_join_the_forms_of_a_word)
{
    static const char *const pairs[][2] = {
        {"cities", "city"},         {"searching", "searches"},     {"running", "runs"},
        {"caching", "cache"},       {"calculator", "calculate"},   {"translation", "translate"},
        {"conversions", "convert"}, {"subscription", "subscribe"}, {"resolution", "resolve"},
        {"reductions", "reduce"},   {"decision", "decide"},        {"division", "divide"},
        {"extension", "extend"},    {"permissions", "permit"},
    };
    static const char *const apart[][2] = {
        {"version", "vert"}, {"conversation", "convert"}, {"mission", "mit"}, {"class", "clash"}};
    struct gw_stemmer *a = stemmer_of("english");
    struct gw_stemmer *b = stemmer_of("english");

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        CHECK(peg__str_eq(gw_stemmer_stem(a, peg__str(pairs[i][0])),
                          gw_stemmer_stem(b, peg__str(pairs[i][1]))));
    for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++)
        CHECK(!peg__str_eq(gw_stemmer_stem(a, peg__str(apart[i][0])),
                           gw_stemmer_stem(b, peg__str(apart[i][1]))));
    gw_stemmer_free(a);
    gw_stemmer_free(b);
}

TEST(stop_words_have_no_stem_and_only_in_english)
{
    static const char *const words[] = {"a", "the", "what", "don", "yourselves", "while", "i"};
    static const char *const others[] = {"thee", "th", "us", "won", "z", "\xC3\xA9", "search"};
    struct gw_stemmer *english = stemmer_of("english");
    struct gw_stemmer *german = stemmer_of("german");
    struct gw_stemmer *none = stemmer_of("none");

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        CHECK_INT(gw_stemmer_stem(english, peg__str(words[i])).len, 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK(gw_stemmer_stem(english, peg__str(others[i])).len > 0);
    CHECK_STR(gw_stemmer_stem(german, peg__str("was")), "was");
    CHECK_STR(gw_stemmer_stem(german, peg__str("katzen")), "katz");
    CHECK_STR(gw_stemmer_stem(none, peg__str("searching")), "searching");
    gw_stemmer_free(english);
    gw_stemmer_free(german);
    gw_stemmer_free(none);
}

TEST(languages_are_those_of_the_stemmer_and_none)
{
    struct gw_language language;
    char names[400];

    gw_language_names(names, sizeof(names));
    CHECK(strstr(names, "none, ") == names);
    CHECK(strstr(names, "english") != NULL);
    CHECK(strlen(names) < sizeof(names) - 1);
    CHECK(!gw_language_find("English", &language));
    CHECK(!gw_language_find("", &language));
    CHECK(!gw_language_find("klingon", &language));
}

TEST(rarity_is_a_logarithm)
{
    CHECK_INT(gw_rarity(1, 1), 1024 * 0.28768207);
    CHECK_INT(gw_rarity(10000, 1), 1024 * 8.80497525);
    CHECK_INT(gw_rarity(10, 10), 1024 * 0.04652001);
    CHECK_INT(gw_rarity(1000000000, 1000000000), 1);
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

TEST(stems_match)
{
    shelf_reset();
    shelf_add("x", "lists all cities", NULL);
    shelf_publish();

    CHECK_STR(found("city"), "x ");
    CHECK_STR(found("listing"), "x ");
    CHECK_STR(found("cats"), "");
    shelf_free();
}

TEST(words_that_nothing_has_find_those_that_begin_with_them)
{
    shelf_reset();
    shelf_add("a", "translates texts", NULL);
    shelf_add("b", "all of transport", NULL);
    shelf_add("c", "calculates", NULL);
    shelf_publish();

    CHECK_STR(found("transl"), "a ");
    CHECK_STR(found("go tran"), "b a ");
    CHECK_STR(found("do a calculat"), "c ");
    CHECK_STR(found("go tr"), ""); /* too short to say anything */
    shelf_free();
}

TEST(words_that_nothing_has_find_those_one_edit_away)
{
    shelf_reset();
    shelf_add("a", "weather reports", NULL);
    shelf_add("b", "receives mail", NULL);
    shelf_publish();

    CHECK_STR(found("wether"), "a ");
    CHECK_STR(found("weathher"), "a ");
    CHECK_STR(found("weither"), "a ");
    CHECK_STR(found("waether"), "a ");
    CHECK_STR(found("recieve"), "b ");
    CHECK_STR(found("wwether"), "");
    CHECK_STR(found("mial"), ""); /* too short: half of all words would do */
    shelf_free();
}

TEST(words_that_something_has_find_nothing_else)
{
    shelf_reset();
    shelf_add("a", "trans", NULL);
    shelf_add("b", "reads about transport", NULL);
    shelf_add("c", "tranz", NULL);
    shelf_publish();

    CHECK_STR(found("my trans"), "a ");
    shelf_free();
}

TEST(unit_conversion_finds_convert)
{
    struct req req = {0};

    shelf_reset();
    req_empty(&req, "units");
    req_tool(&req, "convert", "{}")->description = req_text("From miles to kilometres");
    s.list[s.n++] = req_toolset(&req);
    shelf_add("chat", "Keeps a conversation going", NULL);
    shelf_publish();

    CHECK_STR(found("unit conversion"), "units ");
    CHECK_STR(s.result.hits[0].tools[0]->name, "convert");
    CHECK_STR(found("conversion of money"), "units ");
    shelf_free();
}

TEST(common_words_match_nothing)
{
    shelf_reset();
    shelf_add("my-what", "Now go and do it", NULL);
    shelf_add("weather", "The forecast", NULL);
    shelf_publish();

    CHECK_STR(found("what can you do about my weather"), "weather ");
    CHECK_STR(found("What, now!"), "");
    CHECK_STR(found("my"), "my-what "); /* which contains it */
    shelf_free();
}

TEST(short_texts_and_repeated_words_rank_higher)
{
    shelf_reset();
    shelf_add("a", "One of many things here that nobody expects between others is an invoice",
              NULL);
    shelf_add("b", "Sends an invoice", NULL);
    shelf_add("c", "An invoice, the next invoice", NULL);
    shelf_publish();

    CHECK_STR(found("some invoice"), "c b a ");
    shelf_free();
}

TEST(rare_words_count_more_than_frequent_ones)
{
    shelf_reset();
    shelf_add("a", "report data", NULL);
    shelf_add("b", "report data", NULL);
    shelf_add("c", "report data", NULL);
    shelf_add("d", "turtles", NULL);
    shelf_publish();

    CHECK_STR(found("turtles and data"), "d a b c ");
    shelf_free();
}

TEST(descriptions_of_arguments_are_found_at_any_depth)
{
    struct req req = {0};

    shelf_reset();
    req_empty(&req, "x");
    req_tool(&req, "one",
             "{\"properties\":{\"q\":{\"description\":\"Which glacier\",\"properties\":"
             "{\"inner_volcano\":{}}},\"list\":{\"items\":{\"properties\":{\"deep\":"
             "{\"description\":\"an estuary\"}}}},\"odd\":true,\"bad\":{\"description\":7}}}");
    s.list[s.n++] = req_toolset(&req);
    shelf_publish();

    CHECK_STR(found("glaciers"), "x ");
    CHECK_STR(found("volcano"), "x ");
    CHECK_STR(found("estuaries"), "x ");
    CHECK_STR(found("description"), "");
    shelf_free();
}

TEST(toolsets_stand_by_their_best_tool)
{
    struct req req = {0};

    shelf_reset();
    req_empty(&req, "a");
    req_tool(&req, "ship", "{}");
    req_tool(&req, "order", "{}");
    s.list[s.n++] = req_toolset(&req);
    memset(&req, 0, sizeof(req));
    req_empty(&req, "b");
    req_tool(&req, "list", "{}");
    req_tool(&req, "ship_order", "{}");
    s.list[s.n++] = req_toolset(&req);
    shelf_publish();

    CHECK_STR(found("ship my order"), "b a ");
    CHECK_INT(s.result.hits[0].n_tools, 1);
    CHECK_STR(s.result.hits[0].tools[0]->name, "ship_order");
    CHECK_INT(s.result.hits[1].n_tools, 2);
    shelf_free();
}

static bool is_healthy(void *user, peg_str toolset)
{
    return strchr((const char *)user, toolset.ptr[0]) != NULL;
}

TEST(healthy_toolsets_come_before_others_at_equal_scores)
{
    static char healthy[] = "bd";
    struct gw_search_query query = {
        .text = peg__str("invoice"), .limit = 2, .is_healthy = is_healthy, .user = healthy};

    shelf_reset();
    shelf_add("a", "invoice", NULL);
    shelf_add("b", "invoice", NULL);
    shelf_add("c", "invoice, invoice, invoice", NULL);
    shelf_add("d", "invoice", NULL);
    shelf_publish();

    CHECK_INT(look_for(&query), PEG_OK);
    CHECK_STR(s.result.hits[0].toolset->name, "c"); /* which is better */
    CHECK_STR(s.result.hits[1].toolset->name, "b");
    query.limit = 4;
    CHECK_INT(look_for(&query), PEG_OK);
    CHECK_STR(s.result.hits[2].toolset->name, "d");
    CHECK_STR(s.result.hits[3].toolset->name, "a");
    shelf_free();
}

TEST(all_words_of_a_long_question_are_read)
{
    char text[1100] = "";

    for (unsigned i = 0; i < 100; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "word%u ", i);
    strcat(text, "turtle");
    shelf_reset();
    shelf_add("x", "turtles", NULL);
    shelf_publish();

    CHECK_STR(found(text), "x ");
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

static bool o_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void o_split(const char *text, struct o_words *words)
{
    words->n = 0;
    while (*text) {
        size_t len = 0;
        size_t start = 0;

        while (*text && !o_is_word(*text))
            text++;
        while (text[len] && o_is_word(text[len]))
            len++;
        for (size_t i = 1; i <= len; i++) {
            const bool is_capital = i < len && text[i] >= 'A' && text[i] <= 'Z';
            const bool after_capital = text[i - 1] >= 'A' && text[i - 1] <= 'Z';
            const bool before_small = i + 1 < len && text[i + 1] >= 'a' && text[i + 1] <= 'z';

            if (i == len || o_is_digit(text[i]) != o_is_digit(text[i - 1]) ||
                (is_capital && (!after_capital || before_small))) {
                if ((start == 0 && i == len) || !o_is_digit(text[start]))
                    o_add(words, text + start, i - start);
                start = i;
            }
            if (i == len && start > 0 && words->n && strlen(words->word[words->n - 1]) < len)
                o_add(words, text, len);
        }
        text += len;
    }
}

/* ---- by reading everything: weights ---- */

enum { O_FIELDS = 5, O_STEMS = 3000 };

/* How often each stem of a text stands in each field, and how long the fields are. */
struct o_text {
    struct o_words stems;
    unsigned n[O_WORDS][O_FIELDS];
    unsigned len[O_FIELDS];
};

static struct gw_stemmer *o_stemmer;

static void o_read(struct o_text *text, const char *from, unsigned field)
{
    static struct o_words words;

    o_split(from, &words);
    for (size_t i = 0; i < words.n; i++) {
        const peg_str stem = gw_stemmer_stem(o_stemmer, peg__str(words.word[i]));
        size_t at = 0;

        if (stem.len == 0)
            continue;
        while (at < text->stems.n && !peg__str_eq(peg__str(text->stems.word[at]), stem))
            at++;
        if (at == text->stems.n) {
            o_add(&text->stems, stem.ptr, stem.len);
            memset(text->n[at], 0, sizeof(text->n[at]));
        }
        text->n[at][field]++;
        text->len[field]++;
    }
}

static void o_read_toolset(struct o_text *text, const struct gw_toolset *toolset)
{
    *text = (struct o_text){.len = {0}};
    o_read(text, toolset->name.ptr, 0);
    for (size_t i = 0; i < toolset->n_tags; i++)
        o_read(text, toolset->tags[i].ptr, 1);
    o_read(text, toolset->description.ptr, 2);
}

static void o_read_tool(struct o_text *text, const struct gw_tool *tool)
{
    peg_json_doc *doc = NULL;
    const peg_json *properties;

    *text = (struct o_text){.len = {0}};
    o_read(text, tool->name.ptr, 0);
    o_read(text, tool->description.ptr, 2);
    if (peg_json_parse(tool->input_schema, NULL, &doc, NULL))
        T_FAIL("no JSON");
    properties = peg_json_get(peg_json_root(doc), "properties");
    PEG_JSON_EACH_MEMBER (properties, key) {
        char name[O_BYTES];
        const peg_json *about = peg_json_get(key + 1, "description");

        snprintf(name, sizeof(name), "%.*s", PEG_ARG(peg_json_str(key)));
        o_read(text, name, 3);
        if (about) {
            snprintf(name, sizeof(name), "%.*s", PEG_ARG(peg_json_str(about)));
            o_read(text, name, 4);
        }
    }
    peg_json_doc_free(doc);
}

/* BM25F's share of one stem, rarity aside; 0: the text lacks it. */
static double o_weight(const struct o_text *text, const char *stem)
{
    static const double weights[O_FIELDS] = {3, 2, 1, 0.5, 0.5};
    static const double usual[O_FIELDS] = {3, 3, 10, 5, 20};
    double sum = 0;
    size_t at = 0;

    while (at < text->stems.n && strcmp(text->stems.word[at], stem) != 0)
        at++;
    for (unsigned f = 0; at < text->stems.n && f < O_FIELDS; f++)
        sum += text->n[at][f] * weights[f] / (0.6 + 0.4 * text->len[f] / usual[f]);
    return sum / (1.5 + sum);
}

/* All texts of the catalog. */
static struct o_text o_texts[O_STEMS];
static size_t o_n_texts;

static void o_read_all(void)
{
    o_stemmer = stemmer_of("english");
    o_n_texts = 0;
    for (size_t i = 0; i < s.n; i++) {
        CHECK(o_n_texts + s.list[i]->n_tools < O_STEMS);
        o_read_toolset(&o_texts[o_n_texts++], s.list[i]);
        for (size_t t = 0; t < s.list[i]->n_tools; t++)
            o_read_tool(&o_texts[o_n_texts++], &s.list[i]->tools[t]);
    }
    o_stemmer = gw_stemmer_free(o_stemmer);
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

/* In quarters. */
static unsigned o_whole(const struct gw_toolset *toolset, const char *query)
{
    unsigned score = 0;
    bool in_tag = false;

    for (size_t i = 0; i < toolset->n_tags; i++)
        in_tag = in_tag || o_contains(toolset->tags[i].ptr, query);
    if (o_contains(toolset->name.ptr, query)) {
        char start[512];

        snprintf(start, sizeof(start), "%.*s", (int)strlen(query), toolset->name.ptr);
        score += 4;
        if (o_contains(start, query))
            score += toolset->name.len == strlen(query) ? 64 : 2;
    }
    score += in_tag ? 2 : 0;
    score += o_contains(toolset->description.ptr, query) ? 1 : 0;
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

/* The stems of a query that are in some text, each once, and how much each counts. */
struct o_query {
    bool has_unknown; /* words that no text has: the search looks for similar ones */
    struct o_words stems;
    double rarity[O_WORDS];
};

static void o_read_query(const char *text, struct o_query *query)
{
    static struct o_words words;

    o_split(text, &words);
    query->stems.n = 0;
    query->has_unknown = false;
    for (size_t i = 0; i < words.n; i++) {
        const peg_str stem = gw_stemmer_stem(o_stemmer, peg__str(words.word[i]));
        unsigned n_found = 0;
        size_t at = 0;

        while (at < query->stems.n && !peg__str_eq(peg__str(query->stems.word[at]), stem))
            at++;
        if (at < query->stems.n || stem.len == 0)
            continue;
        o_add(&query->stems, stem.ptr, stem.len);
        for (size_t t = 0; t < o_n_texts; t++)
            n_found += o_weight(&o_texts[t], query->stems.word[at]) > 0;
        query->rarity[at] = gw_rarity(o_n_texts, n_found) / 1024.0;
        query->stems.n -= n_found == 0;
        query->has_unknown = query->has_unknown || n_found == 0;
    }
}

static double o_score(const struct o_text *text, const struct o_query *query)
{
    double score = 0;

    for (size_t i = 0; i < query->stems.n; i++)
        score += 2.5 * query->rarity[i] * o_weight(text, query->stems.word[i]);
    return score;
}

static bool o_search(const char *text)
{
    static struct o_query query;
    size_t at = 0;

    o_stemmer = stemmer_of("english");
    o_read_query(text, &query);
    o_stemmer = gw_stemmer_free(o_stemmer);
    o_n = 0;
    for (size_t i = 0; i < s.n; i++) {
        const unsigned quarters = o_whole(s.list[i], text);
        double score = 0.5 * o_score(&o_texts[at++], &query);
        double best = 0;

        for (size_t t = 0; t < s.list[i]->n_tools; t++) {
            const double tool = o_score(&o_texts[at++], &query);

            best = tool > best ? tool : best;
        }
        score += best + quarters * gw_rarity(o_n_texts, 1) * 2.5 / 4096;
        if (score > 0)
            o_hits[o_n++] = (struct o_hit){s.list[i], score};
    }
    return !query.has_unknown;
}

/* Weights are bytes: so scores differ a little. */
static void compare_hit(const char *query, const struct gw_search_hit *hit, bool is_exact)
{
    size_t i = 0;

    while (i < o_n && o_hits[i].toolset != hit->toolset)
        i++;
    if (i == o_n && !is_exact)
        return;
    if (i == o_n)
        T_FAIL("\"%s\": %s is found, and isn't expected", query, hit->toolset->name.ptr);
    if (o_differ(hit->score, o_hits[i].score, 0.02 + 0.05 * o_hits[i].score) &&
        (is_exact || hit->score < o_hits[i].score))
        T_FAIL("\"%s\": %s has %f, expected %f", query, hit->toolset->name.ptr, hit->score,
               o_hits[i].score);
}

static bool has_order(const struct gw_search_hit *a, const struct gw_search_hit *b)
{
    if (o_differ(a->score, b->score, 0))
        return a->score > b->score;
    return strcmp(a->toolset->name.ptr, b->toolset->name.ptr) < 0;
}

static void compare_searches(const char *query)
{
    const struct gw_search_query asked = {.text = peg__str(query), .limit = MAX};

    const bool is_exact = o_search(query);

    CHECK_INT(look_for(&asked), PEG_OK);
    CHECK_INT(s.result.total, s.result.n);
    if (s.result.n < o_n)
        T_FAIL("\"%s\": %zu are found, expected %zu", query, s.result.n, o_n);
    for (size_t i = 0; i < s.result.n; i++) {
        compare_hit(query, &s.result.hits[i], is_exact);
        CHECK(i == 0 || has_order(&s.result.hits[i - 1], &s.result.hits[i]));
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
    o_read_all();
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
            o_read_all();
            compare_searches(query);
        }
    }
    shelf_free();
}

/* The same toolsets in the same order with the same scores, as far as the limit goes. */
static void compare_limits(const char *query, size_t limit)
{
    const struct gw_search_query all = {.text = peg__str(query), .limit = MAX};
    const struct gw_search_query few = {.text = peg__str(query), .limit = limit};
    static struct gw_search_hit hits[MAX];
    size_t total;

    CHECK_INT(look_for(&all), PEG_OK);
    total = s.result.n;
    if (total)
        memcpy(hits, s.result.hits, total * sizeof(hits[0]));
    CHECK_INT(look_for(&few), PEG_OK);
    CHECK_INT(s.result.n, total < limit ? total : limit);
    CHECK(s.result.total == total || (s.result.total >= 1000 && s.result.total < total));
    for (size_t i = 0; i < s.result.n; i++) {
        if (s.result.hits[i].toolset != hits[i].toolset || s.result.hits[i].score != hits[i].score)
            T_FAIL("\"%s\", limit %zu: hit %zu is %s, expected %s", query, limit, i,
                   s.result.hits[i].toolset->name.ptr, hits[i].toolset->name.ptr);
        CHECK_INT(s.result.hits[i].n_tools, hits[i].n_tools);
    }
}

TEST(bounds_leave_out_nothing_that_belongs_to_the_best)
{
    char query[300];

    shelf_reset();
    words_state = 99;
    words_more = 300;
    for (unsigned i = 0; i < MAX; i++)
        s.list[s.n++] = words_make(i, 3);
    shelf_publish();
    merge_now();
    for (unsigned i = 0; i < t_rounds(200); i++) {
        words_text(query, sizeof(query), 14);
        compare_limits(query, 1 + words_random(30));
    }
    words_more = 0;
    shelf_free();
}

TEST(an_index_has_no_memory_of_how_it_came_about)
{
    static struct gw_search_hit hits[100];
    const struct gw_search_query query = {.text = peg__str("search the cities by email"),
                                          .limit = 100};
    struct gw_search_index *fresh;
    size_t n;

    shelf_reset();
    words_state = 21;
    for (unsigned i = 0; i < 300; i++) {
        change_something(i);
        shelf_publish();
    }
    CHECK_INT(look_for(&query), PEG_OK);
    n = s.result.n;
    CHECK(n > 10);
    memcpy(hits, s.result.hits, n * sizeof(hits[0]));
    fresh = gw_search_index_new(s.index->language);
    gw_search_index_unref(s.index);
    s.index = gw_search_index_next(fresh, 0, (struct gw_toolsets){.n = 0},
                                   (struct gw_toolsets){s.list, s.n});
    gw_search_index_unref(fresh);
    CHECK_INT(look_for(&query), PEG_OK);
    CHECK_INT(s.result.n, n);
    for (size_t i = 0; i < n; i++) {
        CHECK(s.result.hits[i].toolset == hits[i].toolset);
        CHECK(s.result.hits[i].score == hits[i].score);
    }
    shelf_free();
}

TORTURE(indexing_and_searching_survive_any_allocation_failure)
{
    const struct gw_search_query query = {.text = peg__str("search the citiez, forecas"),
                                          .limit = 5};
    struct gw_toolset *list[6];
    const struct gw_language english = {.stemmer = "english"};
    struct gw_search_index *empty = NULL;
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
    empty = gw_search_index_new(english);
    if (empty)
        index = gw_search_index_next(empty, 0, (struct gw_toolsets){.n = 0},
                                     (struct gw_toolsets){list, 4});
    if (index)
        next = gw_search_index_next(index, 0, (struct gw_toolsets){list, 4},
                                    (struct gw_toolsets){list + 1, 5});
    snapshot.index = next;
    if (next)
        status = gw_search(&snapshot, &query, &arena, &result, NULL);
    peg__mem_fail_at(0);
    peg__arena_free(&arena);
    gw_search_index_unref(empty);
    gw_search_index_unref(index);
    gw_search_index_unref(next);
    for (unsigned i = 0; i < 6; i++)
        gw_toolset_unref(list[i]);
    return status;
}
