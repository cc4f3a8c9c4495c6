/* SPDX-License-Identifier: Apache-2.0 */

/* What is particular about turns in files: what the files are, and what others may do to them. */

#include <errno.h>
#include <sys/resource.h>

#include "store_world.h"
#include "turn/store/internal.h"

static const struct store_kind *const files = &store_kinds[1];

/* ---- looking into the folder ---------------------------------------------------------------- */

static const char *path_of(const struct world *w, const char *file)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/turns/%s", w->folder, file);
    return path;
}

static bool is_there(const struct world *w, const char *file)
{
    struct stat about;

    return lstat(path_of(w, file), &about) == 0;
}

/* freed with free() */
static char *read_file(const struct world *w, const char *file, size_t *ret_len)
{
    FILE *stream = fopen(path_of(w, file), "re");
    char *text = malloc(1 << 20);

    CHECK(stream && text);
    *ret_len = fread(text, 1, 1 << 20, stream);
    fclose(stream);
    return text;
}

static void write_file(const struct world *w, const char *file, peg_str text)
{
    FILE *stream = fopen(path_of(w, file), "we");

    CHECK(stream);
    CHECK_INT(fwrite(text.ptr, 1, text.len, stream), text.len);
    fclose(stream);
}

static void check_load_fails(struct world *w, const char *id, const char *expected)
{
    peg_turn *turn = NULL;
    peg_error error = {0};

    CHECK_INT(peg_turn_store_load(w->store, peg_cstr(id), &turn, NULL, &error), PEG_EIO);
    CHECK_STR(peg_cstr(error.code), "E_TURN_STORE");
    CHECK(!turn);
    if (!strstr(error.message, expected))
        T_FAIL("the message is \"%s\", expected \"%s\" in it", error.message, expected);
}

/* ---- what the files are ---------------------------------------------------------------------- */

TEST(a_file_of_the_store_is_a_turn_that_anybody_can_read)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");
    TURN read = NULL;
    peg_error error;
    char *text;
    size_t len;

    world_init(&w, files);
    save(&w, turn);

    text = read_file(&w, "t1.json", &len);
    CHECK_STATUS(peg_turn_read(peg__strn(text, len), NULL, &read, &error), PEG_OK, error);
    CHECK_STR(peg_turn_id(read), "t1");
    CHECK_STR(peg_block_text(peg_turn_at(read, 0)), "hello");
    free(text);
    world_done(&w);
}

TEST(a_turn_read_from_a_file_of_the_store_can_be_saved_again)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");
    TURN read = NULL;
    char *text;
    size_t len;

    world_init(&w, files);
    save(&w, turn);
    text = read_file(&w, "t1.json", &len);
    CHECK_INT(peg_turn_read(peg__strn(text, len), NULL, &read, NULL), PEG_OK);
    free(text);

    save(&w, read);

    check_loads(&w, turn);
    world_done(&w);
}

TEST(a_turn_that_somebody_put_there_is_loaded_and_listed)
{
    struct world w;
    peg_phase phase = PEG_PHASE_PRE_CALL;
    TURN loaded = NULL;

    world_init(&w, files);
    write_file(&w, "by-hand.json",
               peg_cstr("{\n \"id\": \"by-hand\",\n \"blocks\": [{\"kind\": \"user\", "
                        "\"payload\": {\"text\": \"hi\"}}]}"));

    CHECK_INT(peg_turn_store_load(w.store, peg_cstr("by-hand"), &loaded, &phase, NULL), PEG_OK);
    CHECK(loaded);
    CHECK_INT(phase, PEG_PHASE_FINAL);
    CHECK_STR(peg_block_text(peg_turn_at(loaded, 0)), "hi");
    world_done(&w);
}

TEST(the_folder_and_its_files_are_their_owners_alone)
{
    struct world w;
    TURN turn = turn_of_everything("t1");
    struct stat about;

    world_init(&w, files);
    save(&w, turn);

    CHECK_INT(stat(path_of(&w, "."), &about), 0);
    CHECK_INT(about.st_mode & 07777, 0700);
    CHECK_INT(stat(path_of(&w, "t1.json"), &about), 0);
    CHECK_INT(about.st_mode & 07777, 0600);
    CHECK_INT(stat(path_of(&w, "t1.bytes"), &about), 0);
    CHECK_INT(about.st_mode & 07777, 0700);
    world_done(&w);
}

TEST(a_turn_without_large_bytes_has_no_folder_for_them)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");

    world_init(&w, files);
    save(&w, turn);
    CHECK_INT(peg_turn_store_remove(w.store, peg_cstr("other"), NULL), PEG_OK);

    CHECK(!is_there(&w, "t1.bytes"));
    CHECK(!is_there(&w, "other.bytes"));
    world_done(&w);
}

TEST(removing_a_turn_removes_its_bytes)
{
    struct world w;
    TURN turn = turn_of_everything("t1");

    world_init(&w, files);
    save(&w, turn);
    CHECK(is_there(&w, "t1.bytes"));

    CHECK_INT(peg_turn_store_remove(w.store, peg_cstr("t1"), NULL), PEG_OK);

    CHECK(!is_there(&w, "t1.bytes"));
    CHECK(!is_there(&w, "t1.json"));
    world_done(&w);
}

/* ---- names -------------------------------------------------------------------------------------
 */

static const char *name_of(const char *id)
{
    static char name[PEG__DIR_NAME + 1];

    CHECK_INT(peg__dir_name(peg_cstr(id), name), PEG_OK);
    return name;
}

TEST(names_are_safe_and_each_id_has_its_own)
{
    char id[201];
    char name[PEG__DIR_NAME + 1];

    CHECK_STR(peg_cstr(name_of("0190a1b2-c3d4_x.y")), "0190a1b2-c3d4_x.y");
    CHECK_STR(peg_cstr(name_of("../a")), "%2e.%2fa");
    CHECK_STR(peg_cstr(name_of("A%")), "%41%25");
    CHECK_STR(peg_cstr(name_of("~x")), "%7ex");
    CHECK_INT(peg__dir_name(peg__strn("a\0b", 3), name), PEG_OK);
    CHECK_STR(peg_cstr(name), "a%00b");

    memset(id, 'a', 200);
    id[200] = '\0';
    CHECK_INT(strlen(name_of(id)), 200);
    id[0] = 'A';
    CHECK_INT(strlen(name_of(id)), 65);
    CHECK_INT(name_of(id)[0], '~');
}

/* ---- what others did to them --------------------------------------------------------------------
 */

TEST(a_damaged_file_is_told_about_by_name_and_hides_nobody_else)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");
    TURN other = turn_saying("t2", "hello");

    world_init(&w, files);
    save(&w, turn);
    save(&w, other);
    write_file(&w, "t1.json", peg_cstr("{\"pegboard_store\":{\"id\":"));

    check_load_fails(&w, "t1", "t1.json");
    check_loads(&w, other);
    /* Saving puts it right. */
    save(&w, turn);
    check_loads(&w, turn);
    world_done(&w);
}

/* Whatever is left of a file, what is loaded is the turn or nothing. */
TEST(a_file_cut_anywhere_is_no_turn)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");
    char *text;
    size_t len;

    world_init(&w, files);
    save(&w, turn);
    text = read_file(&w, "t1.json", &len);
    for (size_t cut = 0; cut < len; cut++) {
        write_file(&w, "t1.json", peg__strn(text, cut));
        check_load_fails(&w, "t1", "t1.json");
    }
    free(text);
    world_done(&w);
}

TEST(a_file_with_any_byte_changed_crashes_nobody)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");
    char *text;
    size_t len;

    world_init(&w, files);
    save(&w, turn);
    text = read_file(&w, "t1.json", &len);
    for (size_t i = 0; i < len; i++) {
        const char was = text[i];
        peg_turn *loaded = NULL;
        peg_status status;

        text[i] = (char)(was ^ (i % 2 ? 0x20 : 0x81));
        write_file(&w, "t1.json", peg__strn(text, len));
        status = peg_turn_store_load(w.store, peg_cstr("t1"), &loaded, NULL, NULL);
        CHECK(status == PEG_EIO || (status == PEG_OK && loaded));
        peg_turn_free(loaded);
        text[i] = was;
    }
    free(text);
    world_done(&w);
}

static bool hear_none(const peg_turn_info *info, void *user)
{
    (void)info;
    *(int *)user += 1;
    return true;
}

TEST(what_is_no_turn_of_ours_is_not_listed)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");
    int n = 0;
    char *text;
    size_t len;

    world_init(&w, files);
    save(&w, turn);
    text = read_file(&w, "t1.json", &len);
    write_file(&w, "copy.json", peg__strn(text, len)); /* with the id of t1 */
    write_file(&w, "notes.txt", peg_cstr("hello"));
    write_file(&w, "broken.json", peg_cstr("[1,"));
    write_file(&w, "list.json", peg_cstr("[1]"));
    CHECK_INT(mkdir(path_of(&w, "folder.json"), 0700), 0);
    free(text);

    CHECK_INT(peg_turn_store_list(w.store, peg_cstr(""), hear_none, &n, NULL), PEG_OK);

    CHECK_INT(n, 1);
    check_load_fails(&w, "copy", "another turn");
    check_load_fails(&w, "folder", "folder.json");
    world_done(&w);
}

TEST(a_link_in_the_place_of_a_turn_is_not_followed)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");

    world_init(&w, files);
    save(&w, turn);
    CHECK_INT(symlink("t1.json", path_of(&w, "t2.json")), 0);

    check_load_fails(&w, "t2", "t2.json");
    world_done(&w);
}

TEST(bytes_that_are_gone_fail_when_they_are_read)
{
    struct world w;
    TURN turn = turn_of_everything("t1");
    TURN loaded = NULL;
    peg_str bytes;
    peg_error error;

    world_init(&w, files);
    save(&w, turn);
    loaded = load(&w, peg_cstr("t1"));
    CHECK(loaded);
    CHECK_INT(peg_turn_store_remove(w.store, peg_cstr("t1"), NULL), PEG_OK);

    CHECK(peg_artifact_bytes(peg_record_artifact(peg_turn_result_of(loaded, peg_cstr("c2"))),
                             &bytes, &error) != PEG_OK);
    world_done(&w);
}

/* ---- leftovers of crashes
 * -------------------------------------------------------------------------- */

TEST(leftovers_of_a_crash_are_cleared_away_when_nobody_else_is_there)
{
    struct world w;
    TURN turn = turn_of_everything("t1");

    world_init(&w, files);
    save(&w, turn);
    write_file(&w, ".new-0123456789abcdef0123456789abcdef", peg_cstr("half"));
    CHECK_INT(mkdir(path_of(&w, "gone.bytes"), 0700), 0);
    write_file(&w, "gone.bytes/x", peg_cstr("bytes of a turn that is gone"));

    {
        peg_turn_store *second = NULL;

        CHECK_INT(open_files(w.folder, &second, NULL), PEG_OK);
        CHECK(is_there(&w, ".new-0123456789abcdef0123456789abcdef"));
        peg_turn_store_unref(second);
    }
    world_reopen(&w);

    CHECK(!is_there(&w, ".new-0123456789abcdef0123456789abcdef"));
    CHECK(!is_there(&w, "gone.bytes"));
    check_loads(&w, turn);
    world_done(&w);
}

/* ---- what cannot be
 * ----------------------------------------------------------------------------------- */

static void check_refused(const char *path, const char *expected)
{
    peg_turn_store *store = NULL;
    peg_error error = {0};

    CHECK_INT(peg_turn_store_files_new(path, &store, &error), PEG_EIO);
    CHECK_STR(peg_cstr(error.code), "E_TURN_STORE");
    if (!strstr(error.message, expected))
        T_FAIL("the message is \"%s\", expected \"%s\" in it", error.message, expected);
}

TEST(a_folder_that_cannot_be_used_is_refused)
{
    struct world w;

    world_init(&w, files);
    w.store = peg_turn_store_unref(w.store);

    check_refused(path_of(&w, "no/such"), "cannot be made");
    write_file(&w, "file", peg_cstr(""));
    check_refused(path_of(&w, "file"), "is no directory");
    CHECK_INT(symlink(".", path_of(&w, "link")), 0);
    check_refused(path_of(&w, "link"), "is no directory");
    CHECK_INT(chmod(path_of(&w, "."), 0777), 0);
    check_refused(path_of(&w, "."), "0700");
    world_done(&w);
}

/* A limit on the size of files stands for a disk that is full. */
TEST(a_disk_that_is_full_is_an_error_and_the_state_before_stays)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");
    TURN larger = NULL;
    pid_t child;

    world_init(&w, files);
    save(&w, turn);
    CHECK_INT(peg_turn_copy(turn, &larger, NULL), PEG_OK);
    for (int i = 0; i < 1000; i++)
        say(larger, "more");

    child = child_start(0);
    if (child == 0) {
        const struct rlimit limit = {4096, 4096};
        peg_error error = {0};

        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        child_end(0, peg_turn_store_save(w.store, larger, PEG_PHASE_FINAL, &error) == PEG_EIO &&
                             strcmp(error.code, "E_TURN_STORE") == 0 && error.message[0]
                         ? CHILD_WELL
                         : 2);
    }
    CHECK_INT(child_wait(0, child), CHILD_WELL);
    check_loads(&w, turn);
    world_done(&w);
}

TEST(a_folder_that_was_taken_away_is_an_error)
{
    struct world w;
    TURN turn = turn_saying("t1", "hello");
    peg_error error = {0};

    world_init(&w, files);
    CHECK_INT(unlink(path_of(&w, ".lock")), 0);
    CHECK_INT(rmdir(path_of(&w, "")), 0);

    CHECK_INT(peg_turn_store_save(w.store, turn, PEG_PHASE_FINAL, &error), PEG_EIO);

    CHECK_STR(peg_cstr(error.code), "E_TURN_STORE");
    world_done(&w);
}
