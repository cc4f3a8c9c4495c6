/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Turns in files. A file is the turn's JSON as peg_turn_write() makes it, with one more member in
 * front, the store's own:
 *
 *   {"pegboard_store":{"id":"...","session_id":"...","phase":"post_call","saved_ms":1,"n_blocks":9},
 *    "id":"...","blocks":[...]}
 *
 * So the turn and its state are replaced at once, a list reads only the beginning of each file, and
 * any reader of turns can read the file: it keeps unknown members. A file that another program put
 * there, without the member, is a turn like any other.
 *
 * Bytes too large for the text are spooled first, by their digest: they are on the disk before the
 * file that leads to them, and never replaced.
 */

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/result/result.h"
#include "pegboard/cleanup.h"
#include "turn/store/internal.h"
#include "turn/store/store.h"
#include "turn/turn.h"
#include "json/json.h"

#define MEMBER "pegboard_store"

/* Enough for the member in front, unless a session id is very long. */
enum { PEEK_BYTES = 4096 };

/* ---- bytes: a spool store that is opened when it is needed ---------------------------------- */

struct lazy_spool {
    pthread_mutex_t lock;
    peg_spool_store *real; /* under lock; NULL: not opened yet */
    char path[];
};

/* *ret_store is NULL if there is none and it is not to be made. */
static peg_status open_spool(struct lazy_spool *lazy, bool may_make, peg_spool_store **ret_store,
                             peg_error *reterr)
{
    struct stat about;
    peg_status status = PEG_OK;

    pthread_mutex_lock(&lazy->lock);
    if (!lazy->real && (may_make || stat(lazy->path, &about) == 0 || errno != ENOENT))
        status = peg_spool_file_new(lazy->path, PEG_LIMIT_STORE_BYTES, &lazy->real, reterr);
    *ret_store = lazy->real;
    pthread_mutex_unlock(&lazy->lock);
    return status;
}

static peg_status lazy_read(void *user, peg_str key, peg_reader **ret_reader, peg_error *reterr)
{
    peg_spool_store *store = NULL;
    const peg_status status = open_spool(user, false, &store, reterr);

    if (!status && store)
        return peg_spool_read(store, key, ret_reader, reterr);
    *ret_reader = NULL;
    return status;
}

/* Keys are digests: what is there already is what would be written. */
static peg_status lazy_write(void *user, peg_str key, peg_str bytes, peg_reader **ret_reader,
                             peg_error *reterr)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    peg_spool_store *store = NULL;
    peg_status status = open_spool(user, true, &store, reterr);

    if (!status)
        status = peg_spool_read(store, key, &reader, reterr);
    if (status)
        return status;
    if (!reader || peg_reader_byte_length(reader) != (int64_t)bytes.len)
        return peg_spool_write(store, key, bytes, ret_reader, reterr);
    *ret_reader = reader;
    reader = NULL;
    return PEG_OK;
}

static peg_status lazy_remove(void *user, peg_str key, bool *ret_was_there, peg_error *reterr)
{
    peg_spool_store *store = NULL;
    const peg_status status = open_spool(user, false, &store, reterr);

    *ret_was_there = false;
    return status || !store ? status : peg_spool_remove(store, key, ret_was_there, reterr);
}

static void lazy_free(void *user)
{
    struct lazy_spool *lazy = user;

    peg_spool_store_unref(lazy->real);
    pthread_mutex_destroy(&lazy->lock);
    peg__free(lazy);
}

/* The bytes of one turn. */
static peg_status spool_of(const struct peg__dir *dir, const char *name,
                           peg_spool_store **ret_store, peg_error *reterr)
{
    static const peg_spool_ops ops = {
        .write = lazy_write, .read = lazy_read, .remove = lazy_remove, .free = lazy_free};
    const size_t size = strlen(dir->path) + strlen(name) + sizeof("/.bytes");
    struct lazy_spool *lazy = peg__alloc_zero(1, sizeof(*lazy) + size);
    peg_status status;

    if (!lazy)
        return peg__fail_nomem(reterr);
    pthread_mutex_init(&lazy->lock, NULL);
    snprintf(lazy->path, size, "%s/%s.bytes", dir->path, name);
    status = peg_spool_store_new(&ops, lazy, ret_store, reterr);
    if (status)
        lazy_free(lazy);
    return status;
}

/* ---- the member in front ------------------------------------------------------------------- */

static void write_member(const peg_turn_info *info, struct peg__buf *buf)
{
    struct peg__out out = {.buf = buf};

    peg__buf_puts(buf, "{\"" MEMBER "\":");
    peg__out_object(&out);
    peg__out_member(&out, "id", info->id);
    peg__out_member(&out, "session_id", info->session_id);
    peg__out_cmember(&out, "phase", peg_phase_name(info->phase));
    peg__out_key(&out, "saved_ms");
    peg__out_integer(&out, info->saved_ms);
    peg__out_key(&out, "n_blocks");
    peg__out_integer(&out, (int64_t)info->n_blocks);
    peg__out_end_object(&out);
}

static bool get_string(const peg_json *object, const char *name, peg_str *ret_string)
{
    const peg_json *value = peg_json_get(object, name);

    if (!value || value->kind != PEG_JSON_STRING)
        return false;
    *ret_string = peg_json_str(value);
    return true;
}

static bool get_count(const peg_json *object, const char *name, int64_t *ret_number)
{
    return peg_json_int64(peg_json_get(object, name), ret_number) && *ret_number >= 0;
}

/* False if it is not what we write. Strings are borrowed from the member. */
static bool read_member(const peg_json *member, peg_turn_info *ret_info)
{
    peg_turn_info info = {0};
    peg_str phase;
    int64_t n_blocks;

    if (!get_string(member, "id", &info.id) ||
        !get_string(member, "session_id", &info.session_id) ||
        !get_string(member, "phase", &phase) || !peg__phase_from_name(phase, &info.phase) ||
        !get_count(member, "saved_ms", &info.saved_ms) || !get_count(member, "n_blocks", &n_blocks))
        return false;
    info.n_blocks = (size_t)n_blocks;
    *ret_info = info;
    return true;
}

/* The member at the beginning of a file of ours, by finding its end; empty if it is not there. */
static peg_str member_in(peg_str text)
{
    static const peg_str start = PEG_LIT("{\"" MEMBER "\":");
    const size_t from = start.len;
    bool is_string = false;

    if (!peg__str_starts(text, start))
        return peg__strn("", 0);
    for (size_t i = from; i < text.len; i++) {
        if (is_string && text.ptr[i] == '\\')
            i++;
        else if (text.ptr[i] == '"')
            is_string = !is_string;
        else if (!is_string && text.ptr[i] == '}')
            return peg__strn(text.ptr + from, i + 1 - from);
    }
    return peg__strn("", 0);
}

/* Takes our member off the unknown ones of a turn. */
static peg_status take_off(peg_turn *turn, peg_error *reterr)
{
    const peg_json *members = peg__shared_root(turn->members);
    struct peg__shared *rest = NULL;
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    peg_status status;

    peg_json_open_object(b);
    PEG_JSON_EACH_MEMBER (members, key) {
        if (peg__str_is(peg_json_str(key), MEMBER))
            continue;
        peg_json_add_key(b, peg_json_str(key));
        peg_json_add_copy(b, key + 1);
    }
    peg_json_close(b);
    status = peg_json_builder_finish(b, &doc, reterr);
    if (status)
        return status;
    if (!peg_json_len(peg_json_root(doc)))
        peg_json_doc_free(doc);
    else if (!(rest = peg__shared_new(doc)))
        return peg__fail_nomem(reterr);
    peg__shared_unref(turn->members);
    turn->members = rest;
    return PEG_OK;
}

static const peg_json *member_of(const peg_turn *turn)
{
    return peg_json_get(peg__shared_root(turn->members), MEMBER);
}

/* ---- saving ------------------------------------------------------------------- */

/* The text of a file; freed with peg__buf_free(). */
static peg_status write_text(const peg_turn *turn, const peg_turn_info *info,
                             peg_spool_store *bytes, struct peg__buf *ret_buf, peg_error *reterr)
{
    const peg_turn_write_options how = {PEG_TURN_WRITE_OPTIONS_INIT, .format = PEG_FORMAT_JSON,
                                        .bytes = bytes};
    char *text = NULL;
    size_t len = 0;
    peg_status status = peg_turn_write(turn, &how, &text, &len, reterr);

    if (status)
        return status;
    write_member(info, ret_buf);
    peg__buf_putc(ret_buf, ',');
    peg__buf_add(ret_buf, text + 1, len - 1); /* its { stands in front already */
    peg_free(text);
    if (ret_buf->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (ret_buf->status)
        return peg__fail(reterr, PEG_ELIMIT, "E_TURN_TOO_LARGE",
                         "the turn is longer than %d bytes as text", PEG_LIMIT_TEXT_BYTES);
    return PEG_OK;
}

static peg_status save_locked(struct peg__dir *dir, const char *name, const peg_turn *turn,
                              const peg_turn_info *info, peg_error *reterr)
{
    PEG_CLEANUP(peg_spool_store_unrefp) peg_spool_store *bytes = NULL;
    struct peg__buf buf = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status = spool_of(dir, name, &bytes, reterr);

    if (!status)
        status = write_text(turn, info, bytes, &buf, reterr);
    if (!status)
        status = peg__dir_write(dir, name, peg__buf_view(&buf), reterr);
    peg__buf_free(&buf);
    return status;
}

static peg_status files_save(void *self, const peg_turn *turn, const peg_turn_info *info,
                             peg_error *reterr)
{
    PEG_CLEANUP(peg_turn_freep) peg_turn *copy = NULL;
    char name[PEG__DIR_NAME + 1];
    peg_status status = PEG_OK;

    /* A turn that was read from a file of a store by other means. */
    if (member_of(turn) && !(status = peg_turn_copy(turn, &copy, reterr)))
        status = take_off(copy, reterr);
    if (!status)
        status = peg__dir_lock(self, info->id, false, name, reterr);
    if (status)
        return status;
    status = save_locked(self, name, copy ? copy : turn, info, reterr);
    peg__dir_unlock(self, name);
    return status;
}

/* ---- loading ------------------------------------------------------------------ */

/* A turn that stands under another's name is not what was asked for. */
static peg_status check_id(const struct peg__dir *dir, const char *name, const peg_turn *turn,
                           peg_str id, peg_error *reterr)
{
    if (peg__str_eq(peg_turn_id(turn), id))
        return PEG_OK;
    return peg__fail(reterr, PEG_EIO, "E_TURN_STORE",
                     "'%.80s.json' in turn store '%.100s' has the id of another turn: give it its "
                     "own, or take it away",
                     name, dir->path);
}

struct loaded {
    peg_turn *turn;     /* owned */
    peg_turn_info info; /* strings are the turn's */
};

static void describe_turn(const peg_turn *turn, int64_t changed_ms, peg_turn_info *ret_info)
{
    peg_turn_info info = {.id = peg_turn_id(turn),
                          .session_id = peg__turn_session(turn),
                          .phase = PEG_PHASE_FINAL,
                          .saved_ms = changed_ms,
                          .n_blocks = peg_turn_len(turn)};
    peg_turn_info stored;

    if (member_of(turn) && read_member(member_of(turn), &stored)) {
        info.phase = stored.phase;
        info.saved_ms = stored.saved_ms;
    }
    *ret_info = info;
}

static peg_status read_text(const struct peg__dir *dir, const char *name,
                            const struct peg__dir_file *file, const peg_turn_read_options *how,
                            struct loaded *ret_loaded, peg_error *reterr)
{
    struct loaded loaded = {.turn = NULL};
    peg_error why;
    peg_status status = peg_turn_read(peg__strn(file->bytes, file->len), how, &loaded.turn, &why);

    if (status)
        return status == PEG_ENOMEM
                   ? peg__fail_nomem(reterr)
                   : peg__fail_because(reterr, PEG_EIO, "E_TURN_STORE", &why,
                                       "'%.80s.json' in turn store '%.80s' cannot be read", name,
                                       dir->path);
    describe_turn(loaded.turn, file->changed_ms, &loaded.info);
    if (member_of(loaded.turn))
        status = take_off(loaded.turn, reterr);
    if (status)
        peg_turn_free(loaded.turn);
    else
        *ret_loaded = loaded;
    return status;
}

/* All of a file; loaded.turn is NULL if there is none. */
static peg_status load_file(struct peg__dir *dir, const char *name,
                            const peg_turn_read_options *options, struct loaded *ret_loaded,
                            peg_error *reterr)
{
    PEG_CLEANUP(peg_spool_store_unrefp) peg_spool_store *bytes = NULL;
    peg_turn_read_options how = *options;
    struct peg__dir_file file = {.bytes = NULL};
    peg_status status = spool_of(dir, name, &bytes, reterr);

    if (!status)
        status = peg__dir_read(dir, name, (size_t)PEG_LIMIT_TEXT_BYTES + 1, &file, reterr);
    if (status)
        return status;
    how.format = PEG_FORMAT_JSON;
    how.bytes = bytes;
    how.max_bytes = PEG_LIMIT_TEXT_BYTES;
    if (file.bytes)
        status = read_text(dir, name, &file, &how, ret_loaded, reterr);
    peg__free(file.bytes);
    return status;
}

static peg_status files_load(void *self, peg_str id, const peg_turn_read_options *how,
                             peg_turn **ret_turn, peg_phase *ret_phase, peg_error *reterr)
{
    struct peg__dir *dir = self;
    struct loaded loaded = {.turn = NULL};
    char name[PEG__DIR_NAME + 1];
    peg_status status = peg__dir_lock(dir, id, true, name, reterr);

    if (status)
        return status;
    status = load_file(dir, name, how, &loaded, reterr);
    peg__dir_unlock(dir, name);
    if (!status && loaded.turn)
        status = check_id(dir, name, loaded.turn, id, reterr);
    if (status) {
        peg_turn_free(loaded.turn);
        return status;
    }
    *ret_turn = loaded.turn;
    *ret_phase = loaded.info.phase;
    return PEG_OK;
}

/* ---- removing and listing ----------------------------------------------------- */

static peg_status files_remove(void *self, peg_str id, peg_error *reterr)
{
    struct peg__dir *dir = self;
    char name[PEG__DIR_NAME + 1];
    peg_status status = peg__dir_lock(dir, id, false, name, reterr);

    if (status)
        return status;
    status = peg__dir_remove(dir, name, reterr);
    peg__dir_unlock(dir, name);
    return status;
}

struct listing {
    struct peg__dir *dir;
    peg_str session_id;
    struct peg__turn_list *list;
};

static peg_status add_to_list(const struct listing *listing, const char *name,
                              const peg_turn_info *info, peg_error *reterr)
{
    char expected[PEG__DIR_NAME + 1];

    if (info->id.len > PEG_LIMIT_ID_BYTES)
        return PEG_OK;
    if (peg__dir_name(info->id, expected))
        return peg__fail_nomem(reterr);
    if (strcmp(name, expected) != 0 ||
        (listing->session_id.len && !peg__str_eq(listing->session_id, info->session_id)))
        return PEG_OK;
    return peg__turn_list_add(listing->list, info, info->saved_ms, reterr);
}

/* *ret_is_done is false if it has to be read whole. */
static peg_status list_by_member(const struct listing *listing, const char *name, bool *ret_is_done,
                                 peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    PEG_CLEANUP(peg__freep) char *bytes = NULL;
    struct peg__dir_file file = {.bytes = NULL};
    peg_turn_info info;
    peg_str member;
    peg_status status = peg__dir_read(listing->dir, name, PEEK_BYTES, &file, reterr);

    if (status)
        return status;
    bytes = file.bytes;
    *ret_is_done = !bytes; /* it has just been removed */
    member = member_in(peg__strn(bytes ? bytes : "", file.len));
    if (member.len == 0)
        return PEG_OK;
    status = peg_json_parse(member, NULL, &doc, NULL);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status || !read_member(peg_json_root(doc), &info))
        return PEG_OK;
    *ret_is_done = true;
    return add_to_list(listing, name, &info, reterr);
}

static peg_status list_whole(const struct listing *listing, const char *name, peg_error *reterr)
{
    const peg_turn_read_options how = {PEG_TURN_READ_OPTIONS_INIT};
    struct loaded loaded = {.turn = NULL};
    peg_status status = load_file(listing->dir, name, &how, &loaded, reterr);

    if (!status && loaded.turn)
        status = add_to_list(listing, name, &loaded.info, reterr);
    peg_turn_free(loaded.turn);
    return status;
}

/* A damaged file does not hide the others: loading it reports the damage. */
static peg_status list_one(void *user, const char *name, peg_error *reterr)
{
    bool is_done = false;
    peg_error why;
    peg_status status = list_by_member(user, name, &is_done, &why);

    if (!status && !is_done)
        status = list_whole(user, name, &why);
    if (status == PEG_EIO) {
        peg__log(PEG_LOG_WARN, "E_TURN_STORE", "not listed: %s", why.message);
        return PEG_OK;
    }
    if (status && reterr)
        *reterr = why;
    return status;
}

static peg_status files_list(void *self, peg_str session_id, struct peg__turn_list *list,
                             peg_error *reterr)
{
    struct listing listing = {self, session_id, list};

    return peg__dir_each(self, list_one, &listing, reterr);
}

static void files_free(void *self)
{
    peg__dir_close(self);
}

peg_status peg_turn_store_files_new(const char *directory, peg_turn_store **ret_store,
                                    peg_error *reterr)
{
    static const struct peg__turn_store_ops ops = {.save = files_save,
                                                   .load = files_load,
                                                   .remove = files_remove,
                                                   .list = files_list,
                                                   .free = files_free};
    struct peg__dir *dir = NULL;
    const peg_status status = peg__dir_open(directory, &dir, reterr);

    return status ? status : peg__turn_store_new(&ops, dir, ret_store, reterr);
}
