/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_TURN_STORE_WORLD_H
#define PEG_TESTS_TURN_STORE_WORLD_H

/* Turn stores of each kind in a folder of their own, and turns with something of everything. */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/turn_store.h"
#include "turn/turn.h"

#define TURN PEG_CLEANUP(peg_turn_freep) peg_turn *

/* ---- folders --------------------------------------------------------------------------- */

/* In memory where there is such a thing: killed processes are what these tests are about, not power
 * that goes, and thousands of fsync() take their time on a disk. */
static inline void folder_make(char path[64])
{
    snprintf(path, 64, "/dev/shm/peg-store-XXXXXX");
    if (mkdtemp(path))
        return;
    snprintf(path, 64, "/tmp/peg-store-XXXXXX");
    CHECK(mkdtemp(path));
}

/* NOLINTNEXTLINE(misc-no-recursion): a store is two folders deep. */
static inline void folder_remove(int at, const char *name)
{
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (entries && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) != 0)
            folder_remove(fd, entry->d_name);
    }
    if (entries)
        closedir(entries);
    unlinkat(at, name, AT_REMOVEDIR);
}

/* ---- other processes ------------------------------------------------------------------------ */

enum { CHILD_KILLED = 0, CHILD_WELL = 1, MAX_CHILDREN = 4 };

/* A child ends without cleaning up, which valgrind would take for leaks and change its exit status:
 * what it has to say stands in memory that it shares with its parent. */
static volatile int *child_verdicts;

/* As fork(). */
static inline pid_t child_start(int number)
{
    if (!child_verdicts) {
        void *shared = mmap(NULL, sizeof(int) * MAX_CHILDREN, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        CHECK(shared != MAP_FAILED);
        child_verdicts = shared;
    }
    child_verdicts[number] = CHILD_KILLED;
    fflush(stdout);
    return fork();
}

static inline _Noreturn void child_end(int number, int verdict)
{
    child_verdicts[number] = verdict;
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* What a child wrote before its end. */
static inline int child_wait(int number, pid_t child)
{
    int status = 0;

    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return child_verdicts[number];
}

/* ---- kinds of stores --------------------------------------------------------------------- */

struct store_kind {
    const char *name;
    bool lasts; /* what is saved is there when it is opened again */
    peg_status (*open)(const char *folder, peg_turn_store **ret_store, peg_error *reterr);
};

static inline peg_status open_memory(const char *folder, peg_turn_store **ret_store,
                                     peg_error *reterr)
{
    (void)folder;
    return peg_turn_store_memory_new(ret_store, reterr);
}

static inline peg_status open_files(const char *folder, peg_turn_store **ret_store,
                                    peg_error *reterr)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/turns", folder);
    return peg_turn_store_files_new(path, ret_store, reterr);
}

static inline peg_status open_sqlite(const char *folder, peg_turn_store **ret_store,
                                     peg_error *reterr)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/turns.db", folder);
    return peg_turn_store_sqlite_new(path, ret_store, reterr);
}

static const struct store_kind store_kinds[] = {
    {"memory", false, open_memory},
    {"files", true, open_files},
    {"sqlite", true, open_sqlite},
};

enum { N_STORE_KINDS = sizeof(store_kinds) / sizeof(*store_kinds) };

struct world {
    const struct store_kind *kind;
    char folder[64];
    peg_turn_store *store;
};

static inline void world_open(struct world *w)
{
    peg_error error;

    CHECK_STATUS(w->kind->open(w->folder, &w->store, &error), PEG_OK, error);
}

/* As another process would: nothing is left of what the store had in memory. */
static inline void world_reopen(struct world *w)
{
    if (!w->kind->lasts)
        return;
    w->store = peg_turn_store_unref(w->store);
    world_open(w);
}

static inline void world_init(struct world *w, const struct store_kind *kind)
{
    *w = (struct world){.kind = kind};
    folder_make(w->folder);
    world_open(w);
}

static inline void world_done(struct world *w)
{
    peg_turn_store_unref(w->store);
    folder_remove(AT_FDCWD, w->folder);
}

/* A test that every kind of store has to pass. */
#define STORE_TEST(fn)                                                                             \
    static void fn##_in(struct world *w);                                                          \
    TEST(fn)                                                                                       \
    {                                                                                              \
        for (size_t t_i = 0; t_i < N_STORE_KINDS; t_i++) {                                         \
            struct world t_world;                                                                  \
                                                                                                   \
            printf("# %s\n", store_kinds[t_i].name);                                               \
            world_init(&t_world, &store_kinds[t_i]);                                               \
            fn##_in(&t_world);                                                                     \
            world_done(&t_world);                                                                  \
        }                                                                                          \
    }                                                                                              \
    static void fn##_in(struct world *w)

/* ---- turns ---------------------------------------------------------------------------------- */

static inline peg_turn *turn_named(peg_str id)
{
    peg_turn *turn = NULL;
    peg_error error;

    CHECK_STATUS(peg_turn_new(&turn, &error), PEG_OK, error);
    CHECK_STATUS(peg_turn_set_id(turn, id, &error), PEG_OK, error);
    return turn;
}

static inline void say(peg_turn *turn, const char *text)
{
    peg_error error;

    CHECK_STATUS(peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr(text), &error), PEG_OK, error);
}

static inline peg_turn *turn_saying(const char *id, const char *text)
{
    peg_turn *turn = turn_named(peg_cstr(id));

    say(turn, text);
    return turn;
}

static inline void set_session(peg_turn *turn, const char *session)
{
    CHECK_INT(peg_turn_set_string(turn, &peg_key_session_id, peg_cstr(session), NULL), PEG_OK);
}

static inline void add_block(peg_turn *turn, const peg_block_def *def)
{
    peg_block *block = NULL;
    peg_error error;

    CHECK_STATUS(peg_block_new(def, &block, &error), PEG_OK, error);
    CHECK_STATUS(peg_turn_add(turn, block, &error), PEG_OK, error);
    peg_block_unref(block);
}

/* A call and its result, an artifact of so many bytes. */
static inline void add_result(peg_turn *turn, const char *call_id, size_t n_bytes)
{
    const peg_str call = peg_cstr(call_id);
    char *bytes = malloc(n_bytes + 1);
    peg_reader *reader = NULL;
    peg_artifact *artifact = NULL;
    peg_record *record = NULL;
    peg_record_def def = {PEG_RECORD_DEF_INIT, .call_id = call, .tool = peg_cstr("echo"),
                          .args = peg_cstr("{\"x\":1}")};

    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (char)('a' + (i * 7 + i / 26 + (unsigned char)call_id[0]) % 26);
    CHECK_INT(peg_reader_from_bytes(peg__strn(bytes, n_bytes), &reader, NULL), PEG_OK);
    free(bytes);
    CHECK_INT(peg_artifact_new(NULL, reader, &artifact, NULL), PEG_OK);
    peg_reader_unref(reader);
    add_block(turn, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_CALL, .id = call,
                                           .call_id = call, .tool = def.tool, .args = def.args});
    def.key = call;
    def.artifact = artifact;
    CHECK_INT(peg_record_new(&def, &record, NULL), PEG_OK);
    peg_artifact_unref(artifact);
    add_block(turn, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_RESULT,
                                           .record = record});
    peg_record_unref(record);
}

static inline void add_image(peg_turn *turn, size_t n_bytes)
{
    char *bytes = calloc(1, n_bytes + 1);
    peg_reader *reader = NULL;
    peg_media *media = NULL;

    CHECK_INT(peg_reader_from_bytes(peg__strn(bytes, n_bytes), &reader, NULL), PEG_OK);
    free(bytes);
    CHECK_INT(
        peg_media_user_attachment(
            &(const peg_media_def){PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_IMAGE,
                                   .mime_type = "image/png", .filename = "a.png", .reader = reader},
            &media, NULL),
        PEG_OK);
    peg_reader_unref(reader);
    add_block(turn, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER,
                                           .media = &media, .n_media = 1});
    peg_media_unref(media);
}

static inline void set_json(peg_turn *turn, peg_bag_kind bag, const char *id, const char *text)
{
    const peg_key key = {.bag = bag, .id = id};
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_STATUS(peg_json_parse(peg_cstr(text), NULL, &doc, &error), PEG_OK, error);
    CHECK_STATUS(peg_turn_set(turn, &key, peg_json_root(doc), &error), PEG_OK, error);
    peg_json_doc_free(doc);
}

/* Every kind of block, small and large bytes, bags. */
static inline peg_turn *turn_of_everything(const char *id)
{
    peg_turn *turn = turn_named(peg_cstr(id));

    add_block(turn, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_SYSTEM,
                                           .text = peg_cstr("be brief")});
    say(turn, "how many \xc3\xa4pfel, \"quoted\"\n?");
    add_block(turn, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_REASONING,
                                           .text = peg_cstr("hm")});
    add_result(turn, "c1", 10);
    add_result(turn, "c2", 300000);
    add_image(turn, 70000);
    add_block(turn, &(const peg_block_def){
                        PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_OTHER, .type = peg_cstr("memory"),
                        .text = peg_cstr("they like apples"), .tier = PEG_TIER_FIRST_PARTY});
    add_block(turn, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_ASSISTANT,
                                           .text = peg_cstr("3")});
    set_json(turn, PEG_BAG_DATA, "test.numbers@v1", "[1, 2.50, 1e400, \"x\", null]");
    set_json(turn, PEG_BAG_METADATA, "test.note@v1", "{\"b\": 1, \"a\": {}}");
    set_session(turn, "s1");
    return turn;
}

/* The turn as text, with all of its bytes; freed with peg_free(). */
static inline char *text_of_turn(const peg_turn *turn)
{
    char *text = NULL;
    peg_error error;

    CHECK_STATUS(peg_turn_write(turn, NULL, &text, NULL, &error), PEG_OK, error);
    return text;
}

static inline void check_same(const peg_turn *actual, const peg_turn *expected)
{
    char *a = text_of_turn(actual);
    char *b = text_of_turn(expected);

    if (strcmp(a, b) != 0)
        T_FAIL("the turn is\n%.2000s\nexpected\n%.2000s", a, b);
    peg_free(a);
    peg_free(b);
}

/* ---- saving and loading ------------------------------------------------------------------------
 */

static inline void save(struct world *w, const peg_turn *turn)
{
    peg_error error;

    CHECK_STATUS(peg_turn_store_save(w->store, turn, PEG_PHASE_POST_CALL, &error), PEG_OK, error);
}

/* NULL if there is none. */
static inline peg_turn *load(struct world *w, peg_str id)
{
    peg_turn *turn = NULL;
    peg_error error;

    CHECK_STATUS(peg_turn_store_load(w->store, id, &turn, NULL, &error), PEG_OK, error);
    return turn;
}

static inline void check_loads(struct world *w, const peg_turn *expected)
{
    TURN loaded = load(w, peg_turn_id(expected));

    CHECK(loaded);
    check_same(loaded, expected);
}

#endif
