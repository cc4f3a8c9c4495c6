/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/access/tokens.h"
#include "pegboard/log.h"

/* SHA-256 of "test" and of "other". */
#define HASH_TEST "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
#define HASH_OTHER "sha256:d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"
#define ZEROS "00000000000000000000000000000000000000000000000000000000000000"

/* ---- a folder with a token file ---- */

struct place {
    char folder[64];
    char path[96];
};

static void place_make(struct place *p)
{
    snprintf(p->folder, sizeof(p->folder), "/tmp/peg-tokens-XXXXXX");
    if (!mkdtemp(p->folder))
        T_FAIL("no folder");
    snprintf(p->path, sizeof(p->path), "%s/tokens", p->folder);
}

static void place_remove(struct place *p)
{
    unlink(p->path);
    if (rmdir(p->folder) != 0)
        T_FAIL("something was left in %s", p->folder);
}

static void put(const struct place *p, const char *text, mode_t mode)
{
    FILE *file = fopen(p->path, "w");

    if (!file)
        T_FAIL("no file");
    fputs(text, file);
    fclose(file);
    chmod(p->path, mode);
}

static peg_status parse(const char *text, peg_error *reterr)
{
    struct gw_token_table *table = NULL;
    const peg_status status = gw_token_table_parse(peg__str(text), "f", &table, reterr);

    gw_token_table_free(table);
    return status;
}

/* ---- the text ---- */

TEST(a_token_file_has_names_hashes_comments_and_blank_lines)
{
    struct gw_token_table *table = NULL;
    unsigned char digest[32];

    CHECK_INT(gw_token_table_parse(peg__str("# comment\n\n  \t\r\nci " HASH_TEST "\r\n"
                                            "\tbob@example.org\t" HASH_OTHER "  "),
                                   "f", &table, NULL),
              PEG_OK);

    CHECK_INT(gw_token_table_len(table), 2);
    peg__sha256(peg__str("test"), digest);
    CHECK_STR(peg__str(gw_token_table_find(table, digest)->name), "ci");
    peg__sha256(peg__str("other"), digest);
    CHECK_STR(peg__str(gw_token_table_find(table, digest)->name), "bob@example.org");
    peg__sha256(peg__str("nobody"), digest);
    CHECK(gw_token_table_find(table, digest) == NULL);
    CHECK(gw_token_table_has_name(table, peg__str("ci")));
    CHECK(gw_token_table_has_name(table, peg__str("bob@example.org")));
    CHECK(!gw_token_table_has_name(table, peg__str("c")));
    CHECK(!gw_token_table_has_name(table, peg__str("cir")));
    CHECK(!gw_token_table_has_name(table, peg__str("")));
    gw_token_table_free(table);
}

TEST(a_token_that_is_marked_admin_is_told_from_one_that_is_not)
{
    struct place p;
    struct gw_tokens *tokens = NULL;
    struct gw_token_owner holder;
    struct gw_token_memo memo = {0};

    place_make(&p);
    put(&p, "ops " HASH_TEST " admin\nops " HASH_OTHER "\n", 0600);
    CHECK_INT(gw_tokens_new(p.path, &tokens, NULL), PEG_OK);
    CHECK(gw_tokens_find(tokens, peg__str("test"), &holder));
    CHECK(holder.is_admin);
    CHECK(gw_tokens_find(tokens, peg__str("other"), &holder));
    CHECK(!holder.is_admin);
    for (int i = 0; i < 2; i++) {
        CHECK(gw_tokens_find_again(tokens, &memo, peg__str("test"))->is_admin);
        CHECK(!gw_tokens_find_again(tokens, &memo, peg__str("other"))->is_admin);
    }

    put(&p, "ops " HASH_TEST "\n", 0600); /* one that lost the mark is ordinary at once */
    CHECK_INT(gw_tokens_reload(tokens, NULL), PEG_OK);
    CHECK(!gw_tokens_find_again(tokens, &memo, peg__str("test"))->is_admin);
    gw_tokens_free(tokens);
    place_remove(&p);
}

TEST(a_bad_line_is_named_by_its_number)
{
    static const char *const bad[] = {
        "ci",
        "ci " HASH_TEST "0",
        "ci sha256:9f86",
        "ci sha1:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "ci sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00aXY",
        "c\x01i " HASH_TEST,
        "c*i " HASH_TEST,
        "ci " HASH_TEST " more",
        "ci " HASH_TEST " Admin",
        "ci " HASH_TEST " admin more",
        "ci " HASH_TEST "admin",
        "ci admin " HASH_TEST,
        "peg_abcdefg",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[256];
        peg_error error;

        snprintf(text, sizeof(text), "# first\n\n%s\n", bad[i]);
        CHECK_INT(parse(text, &error), PEG_EPARSE);
        CHECK_INT(error.line, 3);
        CHECK(strstr(error.message, "f:3:") != NULL);
        CHECK(strstr(error.message, "peg_abc") == NULL);
    }
}

TEST(a_name_may_have_two_tokens_and_a_token_only_one_name)
{
    peg_error error;

    CHECK_INT(parse("ci " HASH_TEST "\nci " HASH_OTHER "\n", NULL), PEG_OK);
    CHECK_INT(parse("a " HASH_TEST "\nb " HASH_OTHER "\nc " HASH_TEST "\n", &error), PEG_EPARSE);
    CHECK_INT(error.line, 3);
}

TEST(a_name_has_at_most_128_characters)
{
    char text[300];

    memset(text, 'a', sizeof(text));
    snprintf(text + 128, sizeof(text) - 128, " %s", HASH_TEST);
    CHECK_INT(parse(text, NULL), PEG_OK);
    memset(text, 'a', 129);
    snprintf(text + 129, sizeof(text) - 129, " %s", HASH_TEST);
    CHECK_INT(parse(text, NULL), PEG_EPARSE);
}

static char *many(size_t n, size_t *ret_len)
{
    char *text = malloc(n * 80 + 1);
    size_t len = 0;

    for (size_t i = 0; i < n; i++)
        len += (size_t)sprintf(text + len, "t sha256:%064zx\n", i);
    *ret_len = len;
    return text;
}

TEST(tokens_are_counted)
{
    struct gw_token_table *table = NULL;
    size_t len;
    char *text = many(PEG_LIMIT_GATEWAY_TOKENS + 1, &len);
    peg_error error;

    CHECK_INT(gw_token_table_parse(peg__strn(text, len), "f", &table, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "there are more than 10000 tokens") != NULL);
    CHECK_INT(gw_token_table_parse(peg__strn(text, len - 74), "f", &table, &error), PEG_OK);
    CHECK_INT(gw_token_table_len(table), PEG_LIMIT_GATEWAY_TOKENS);
    gw_token_table_free(table);
    free(text);
}

/* ---- the file ---- */

TEST(a_token_file_is_read_and_read_again)
{
    struct place p;
    struct gw_tokens *tokens = NULL;
    struct gw_token_owner holder;

    place_make(&p);
    put(&p, "ci " HASH_TEST "\n", 0600);
    CHECK_INT(gw_tokens_new(p.path, &tokens, NULL), PEG_OK);
    CHECK(gw_tokens_find(tokens, peg__str("test"), &holder));
    CHECK_STR(peg__str(holder.name), "ci");
    CHECK(!gw_tokens_find(tokens, peg__str("other"), &holder));

    put(&p, "x " HASH_OTHER "\n", 0600);
    CHECK_INT(gw_tokens_reload(tokens, NULL), PEG_OK);

    CHECK(!gw_tokens_find(tokens, peg__str("test"), &holder));
    CHECK(gw_tokens_find(tokens, peg__str("other"), &holder));
    CHECK_INT(gw_tokens_len(tokens), 1);
    gw_tokens_free(tokens);
    place_remove(&p);
}

TEST(a_file_that_cannot_be_read_again_leaves_the_tokens_as_they_were)
{
    struct place p;
    struct gw_tokens *tokens = NULL;
    struct gw_token_owner holder;

    place_make(&p);
    put(&p, "ci " HASH_TEST "\n", 0600);
    CHECK_INT(gw_tokens_new(p.path, &tokens, NULL), PEG_OK);

    put(&p, "rubbish\n", 0600);
    CHECK_INT(gw_tokens_reload(tokens, NULL), PEG_EPARSE);
    CHECK(gw_tokens_find(tokens, peg__str("test"), &holder));
    unlink(p.path);
    CHECK_INT(gw_tokens_reload(tokens, NULL), PEG_EIO);
    CHECK(gw_tokens_find(tokens, peg__str("test"), &holder));
    gw_tokens_free(tokens);
    place_remove(&p);
}

TEST(a_file_that_is_not_there_or_no_file_is_refused)
{
    struct gw_tokens *tokens = NULL;
    peg_error error;

    CHECK_INT(gw_tokens_new("/nonexistent/tokens", &tokens, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_TOKEN_FILE");
    CHECK_INT(gw_tokens_new("/tmp", &tokens, &error), PEG_EIO);
    CHECK(tokens == NULL);
}

TEST(a_file_that_everybody_may_write_to_is_refused)
{
    struct place p;
    struct gw_tokens *tokens = NULL;
    peg_error error;

    place_make(&p);
    put(&p, "ci " HASH_TEST "\n", 0602);
    CHECK_INT(gw_tokens_new(p.path, &tokens, &error), PEG_EIO);
    CHECK(strstr(error.message, "chmod 600") != NULL);
    place_remove(&p);
}

static void note_code(peg_log_level level, const char *code, const char *message, void *user)
{
    (void)level;
    (void)message;
    snprintf(user, 64, "%s", code);
}

TEST(a_file_that_everybody_may_read_is_taken_with_a_warning)
{
    struct place p;
    struct gw_tokens *tokens = NULL;
    char heard[64] = "";

    place_make(&p);
    put(&p, "ci " HASH_TEST "\n", 0644);
    CHECK_INT(peg_log_set(note_code, PEG_LOG_WARN, heard), PEG_OK);
    CHECK_INT(gw_tokens_new(p.path, &tokens, NULL), PEG_OK);
    CHECK_INT(peg_log_set(NULL, PEG_LOG_WARN, NULL), PEG_OK);
    CHECK_STR(peg__str(heard), "E_TOKEN_FILE");
    gw_tokens_free(tokens);
    place_remove(&p);
}

TEST(a_file_that_is_too_large_is_refused)
{
    struct place p;
    struct gw_tokens *tokens = NULL;
    peg_error error;

    place_make(&p);
    put(&p, "# ", 0600);
    CHECK_INT(truncate(p.path, PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES + 1), 0);
    CHECK_INT(gw_tokens_new(p.path, &tokens, &error), PEG_ELIMIT);
    CHECK_INT(truncate(p.path, 64 << 20), 0);
    CHECK_INT(gw_tokens_new(p.path, &tokens, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "is it the right file?") != NULL);
    place_remove(&p);
}

/* ---- what a thread remembers ---- */

TEST(a_memo_answers_as_the_file_does)
{
    static struct gw_token_memo memo;
    struct place p;
    struct gw_tokens *tokens = NULL;

    place_make(&p);
    put(&p, "ci " HASH_TEST "\n", 0600);
    CHECK_INT(gw_tokens_new(p.path, &tokens, NULL), PEG_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_STR(peg__str(gw_tokens_find_again(tokens, &memo, peg__str("test"))->name), "ci");
        CHECK(!gw_tokens_find_again(tokens, &memo, peg__str("tes")));
        CHECK(!gw_tokens_find_again(tokens, &memo, peg__str("test1")));
        CHECK(!gw_tokens_find_again(tokens, &memo, peg__strn("test\0", 5)));
        CHECK(!gw_tokens_find_again(tokens, &memo, peg__str("")));
    }

    put(&p, "now " HASH_TEST "\n", 0600);
    CHECK_INT(gw_tokens_reload(tokens, NULL), PEG_OK);
    CHECK_STR(peg__str(gw_tokens_find_again(tokens, &memo, peg__str("test"))->name), "now");
    put(&p, "x " HASH_OTHER "\n", 0600);
    CHECK_INT(gw_tokens_reload(tokens, NULL), PEG_OK);
    CHECK(!gw_tokens_find_again(tokens, &memo, peg__str("test")));
    gw_tokens_free(tokens);
    place_remove(&p);
}

TEST(a_long_token_is_found_without_being_remembered)
{
    static struct gw_token_memo memo;
    struct place p;
    struct gw_tokens *tokens = NULL;
    char line[128];
    char hex[PEG_SHA256_HEX];
    unsigned char digest[32];
    char token[200];

    memset(token, 'y', sizeof(token));
    peg__sha256(peg__strn(token, sizeof(token)), digest);
    peg__hex(digest, sizeof(digest), hex);
    snprintf(line, sizeof(line), "long sha256:%s\n", hex);
    place_make(&p);
    put(&p, line, 0600);
    CHECK_INT(gw_tokens_new(p.path, &tokens, NULL), PEG_OK);
    CHECK_STR(peg__str(gw_tokens_find_again(tokens, &memo, peg__strn(token, sizeof(token)))->name),
              "long");
    CHECK_STR(peg__str(gw_tokens_find_again(tokens, &memo, peg__strn(token, sizeof(token)))->name),
              "long");
    gw_tokens_free(tokens);
    place_remove(&p);
}

struct asking {
    struct gw_tokens *tokens;
    atomic_bool is_over;
    atomic_uint n_wrong;
    atomic_uint n_asked;
};

static void *ask(void *user)
{
    struct asking *a = user;
    struct gw_token_memo memo = {0};

    while (!atomic_load(&a->is_over)) {
        const struct gw_token_owner *holder =
            gw_tokens_find_again(a->tokens, &memo, peg__str("test"));

        if (!holder || (strcmp(holder->name, "one") != 0 && strcmp(holder->name, "two") != 0))
            a->n_wrong++;
        a->n_asked++;
    }
    return NULL;
}

TEST(tokens_are_read_again_while_threads_ask)
{
    struct place p;
    struct asking a = {0};
    pthread_t threads[3];

    place_make(&p);
    put(&p, "one " HASH_TEST "\n", 0600);
    CHECK_INT(gw_tokens_new(p.path, &a.tokens, NULL), PEG_OK);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, ask, &a);
    for (int i = 0; i < 50 || atomic_load(&a.n_asked) < 1000; i++) {
        char text[128];
        char fresh[120];
        struct place other = p;

        /* As one does it who edits the file: beside it, and in its place. */
        snprintf(text, sizeof(text), "%s " HASH_TEST "\n", i % 2 ? "one" : "two");
        snprintf(fresh, sizeof(fresh), "%s/new", p.folder);
        snprintf(other.path, sizeof(other.path), "%s/new", p.folder);
        put(&other, text, 0600);
        CHECK_INT(rename(fresh, p.path), 0);
        CHECK_INT(gw_tokens_reload(a.tokens, NULL), PEG_OK);
    }
    atomic_store(&a.is_over, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(a.n_wrong, 0);
    gw_tokens_free(a.tokens);
    place_remove(&p);
}

/* ---- new ones ---- */

TEST(a_new_token_is_known_at_once_and_only_its_hash_is_kept)
{
    struct place p;
    struct gw_tokens *tokens = NULL;
    char first[GW_TOKEN_TEXT];
    char second[GW_TOKEN_TEXT];
    struct gw_token_owner holder;
    char text[1024] = "";
    struct stat st;
    FILE *file;

    place_make(&p);
    CHECK_INT(gw_token_new(p.path, peg__str("ci"), first, NULL), PEG_OK);
    CHECK_INT(gw_token_new(p.path, peg__str("bob@example.org"), second, NULL), PEG_OK);

    CHECK_INT(strlen(first), GW_TOKEN_TEXT - 1);
    CHECK(strncmp(first, "peg_", 4) == 0);
    CHECK_INT(strspn(first, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"),
              GW_TOKEN_TEXT - 1);
    CHECK(strcmp(first, second) != 0);
    CHECK_INT(stat(p.path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_INT(gw_tokens_new(p.path, &tokens, NULL), PEG_OK);
    CHECK(gw_tokens_find(tokens, peg__str(first), &holder));
    CHECK_STR(peg__str(holder.name), "ci");
    CHECK(gw_tokens_find(tokens, peg__str(second), &holder));
    file = fopen(p.path, "r");
    CHECK(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    CHECK(strstr(text, first + 4) == NULL);
    gw_tokens_free(tokens);
    place_remove(&p);
}

TEST(a_new_token_keeps_what_stands_in_the_file_and_its_mode)
{
    struct place p;
    char token[GW_TOKEN_TEXT];
    char text[1024] = "";
    struct stat st;
    FILE *file;

    place_make(&p);
    put(&p, "# mine\nci " HASH_TEST, 0640);
    CHECK_INT(gw_token_new(p.path, peg__str("x"), token, NULL), PEG_OK);

    file = fopen(p.path, "r");
    CHECK(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    CHECK(strncmp(text, "# mine\nci " HASH_TEST "\nx sha256:", 80) == 0);
    CHECK_INT(stat(p.path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0640);
    place_remove(&p);
}

TEST(a_new_token_goes_through_a_link)
{
    struct place p;
    char link[128];
    char token[GW_TOKEN_TEXT];
    struct stat st;

    place_make(&p);
    put(&p, "", 0600);
    snprintf(link, sizeof(link), "%s/link", p.folder);
    CHECK_INT(symlink("tokens", link), 0);
    CHECK_INT(gw_token_new(link, peg__str("x"), token, NULL), PEG_OK);
    CHECK_INT(lstat(link, &st), 0);
    CHECK(S_ISLNK(st.st_mode));
    CHECK_INT(stat(p.path, &st), 0);
    CHECK(st.st_size > 0);
    unlink(link);
    place_remove(&p);
}

TEST(a_file_with_an_error_is_not_added_to)
{
    struct place p;
    char token[GW_TOKEN_TEXT] = "untouched";
    struct stat st;

    place_make(&p);
    put(&p, "rubbish\n", 0600);
    CHECK_INT(gw_token_new(p.path, peg__str("x"), token, NULL), PEG_EPARSE);
    CHECK_STR(peg__str(token), "untouched");
    CHECK_INT(stat(p.path, &st), 0);
    CHECK_INT(st.st_size, 8);
    place_remove(&p);
}

TEST(a_token_needs_a_good_name_and_a_place)
{
    char token[GW_TOKEN_TEXT];
    peg_error error;

    CHECK_INT(gw_token_new("/tmp/x", peg__str(""), token, &error), PEG_EINVAL);
    CHECK_INT(gw_token_new("/tmp/x", peg__str("a b"), token, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_TOKEN_NAME");
    CHECK_INT(gw_token_new("/nonexistent/x", peg__str("a"), token, &error), PEG_EIO);
}

static void *add_ten(void *user)
{
    char token[GW_TOKEN_TEXT];

    for (int i = 0; i < 10; i++) {
        if (gw_token_new(user, peg__str("t"), token, NULL) != PEG_OK)
            return user;
    }
    return NULL;
}

TEST(tokens_that_are_made_at_the_same_time_are_all_kept)
{
    struct place p;
    pthread_t threads[4];
    struct gw_tokens *tokens = NULL;

    place_make(&p);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, add_ten, p.path);
    for (int i = 0; i < 4; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        CHECK(!failed);
    }
    CHECK_INT(gw_tokens_new(p.path, &tokens, NULL), PEG_OK);
    CHECK_INT(gw_tokens_len(tokens), 40);
    gw_tokens_free(tokens);
    place_remove(&p);
}

/* ---- taking out ---- */

static void read_text(const struct place *p, char *text, size_t size)
{
    FILE *file = fopen(p->path, "r");

    CHECK(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

static const char three[] = "# ci, of the build server\n"
                            "ci " HASH_TEST "\r\n"
                            "\n"
                            "cia sha256:" ZEROS "00\n"
                            "  ci\t" HASH_OTHER " admin";

TEST(revoking_takes_out_the_tokens_of_a_name_and_nothing_else)
{
    struct place p;
    char text[1024];
    struct stat st;
    size_t n = 0;

    place_make(&p);
    put(&p, three, 0640);
    CHECK_INT(gw_token_revoke(p.path, peg__str("ci"), peg__str(""), &n, NULL), PEG_OK);
    CHECK_INT(n, 2);
    read_text(&p, text, sizeof(text));
    CHECK_STR(peg__str(text), "# ci, of the build server\n\ncia sha256:" ZEROS "00\n");
    CHECK_INT(stat(p.path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0640);
    place_remove(&p);
}

TEST(revoking_by_hash_leaves_the_other_tokens_of_the_name)
{
    struct place p;
    struct gw_tokens *tokens = NULL;
    struct gw_token_owner holder;
    size_t n = 0;

    place_make(&p);
    put(&p, three, 0600);
    CHECK_INT(gw_token_revoke(p.path, peg__str("ci"), peg__str("9F86d081"), &n, NULL), PEG_OK);
    CHECK_INT(n, 1);
    CHECK_INT(gw_tokens_new(p.path, &tokens, NULL), PEG_OK);
    CHECK(!gw_tokens_find(tokens, peg__str("test"), &holder));
    CHECK(gw_tokens_find(tokens, peg__str("other"), &holder));
    gw_tokens_free(tokens);
    place_remove(&p);
}

TEST(revoking_what_is_not_there_changes_nothing_and_makes_no_file)
{
    static const char *const nobody[] = {"bob", "c", "#", "", "ci ", "a\nb"};
    struct place p;
    char text[1024];
    size_t n = 7;
    peg_error error;

    place_make(&p);
    CHECK_INT(gw_token_revoke(p.path, peg__str("ci"), peg__str(""), &n, &error), PEG_EIO);
    CHECK_INT(access(p.path, F_OK), -1);
    put(&p, three, 0600);
    for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
        CHECK_INT(gw_token_revoke(p.path, peg__str(nobody[i]), peg__str(""), &n, &error),
                  PEG_ENOTFOUND);
        CHECK_STR(peg__str(error.code), "E_TOKEN_NAME");
    }
    CHECK_INT(gw_token_revoke(p.path, peg__str("ci"), peg__str("abc"), &n, &error), PEG_ENOTFOUND);
    CHECK(strstr(error.message, "with the hash abc") != NULL);
    CHECK_INT(n, 7);
    read_text(&p, text, sizeof(text));
    CHECK_STR(peg__str(text), three);
    place_remove(&p);
}

TEST(a_file_with_an_error_is_not_taken_out_of)
{
    struct place p;
    size_t n = 0;

    place_make(&p);
    put(&p, "rubbish\nci " HASH_TEST "\n", 0600);
    CHECK_INT(gw_token_revoke(p.path, peg__str("ci"), peg__str(""), &n, NULL), PEG_EPARSE);
    place_remove(&p);
}

TORTURE(tokens_survive_any_allocation_failure)
{
    struct place p;
    struct gw_tokens *tokens = NULL;
    char token[GW_TOKEN_TEXT];
    size_t n;
    peg_status status;

    place_make(&p);
    put(&p, "ci " HASH_TEST "\n", 0600);
    status = gw_tokens_new(p.path, &tokens, NULL);
    if (!status)
        status = gw_tokens_reload(tokens, NULL);
    if (!status)
        status = gw_token_new(p.path, peg__str("x"), token, NULL);
    if (!status)
        status = gw_token_revoke(p.path, peg__str("x"), peg__str(""), &n, NULL);
    gw_tokens_free(tokens);
    place_remove(&p);
    return status;
}
