/* SPDX-License-Identifier: Apache-2.0 */

/*
 * New tokens, and tokens that are taken out. The file is written anew beside the old one and takes
 * its place, so that a gateway which reads it meanwhile, or a crash, finds one or the other. Two
 * who change it at the same time take turns by a lock on the file that stands; the one that got it
 * looks whether that file still does.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "base/text/token.h"
#include "gateway/access/tokens.h"

enum { TOKEN_BYTES = 32, MAX_TRIES = 100 };

/* What has to be given back, in any state. */
struct edit {
    const char *path;
    int flags;             /* O_CREAT: it may not be there yet */
    char target[PATH_MAX]; /* where a link leads: it stays one */
    int fd;                /* locked; -1: none */
    struct peg__buf text;
    mode_t mode;
};

/* peg_ and 43 characters of [A-Za-z0-9_-]. */
peg_status gw_token_make(char ret_token[GW_TOKEN_TEXT], peg_error *reterr)
{
    unsigned char bytes[TOKEN_BYTES];
    char text[46];

    if (!peg__random(bytes, sizeof(bytes)))
        return peg__fail_no_randomness(reterr);
    peg__base64_encode(peg__strn((const char *)bytes, sizeof(bytes)), text);
    for (char *c = text; *c; c++) {
        if (*c == '+')
            *c = '-';
        else if (*c == '/')
            *c = '_';
    }
    memcpy(ret_token, PEG_TOKEN_PREFIX, 4);
    memcpy(ret_token + 4, text, GW_TOKEN_TEXT - 5); /* without the '=' at its end */
    ret_token[GW_TOKEN_TEXT - 1] = '\0';
    return PEG_OK;
}

/* ---- the file that stands ---- */

/* 1: locked, and it is the one under that name; 0: it is another one by now; -1: errno. */
static int lock_once(struct edit *edit)
{
    struct stat held;
    struct stat named;

    edit->fd = open(edit->path, O_RDWR | edit->flags | O_CLOEXEC | O_NONBLOCK, 0600);
    if (edit->fd < 0 || flock(edit->fd, LOCK_EX) != 0 || fstat(edit->fd, &held) != 0)
        return -1;
    if (stat(edit->path, &named) == 0 && held.st_dev == named.st_dev &&
        held.st_ino == named.st_ino) {
        edit->mode = held.st_mode & 0777;
        return 1;
    }
    close(edit->fd);
    edit->fd = -1;
    return 0;
}

static peg_status lock_file(struct edit *edit, peg_error *reterr)
{
    int got = 0;

    for (int i = 0; i < MAX_TRIES && got == 0; i++)
        got = lock_once(edit);
    if (got == 0)
        errno = EBUSY;
    if (got != 1)
        return gw_token_file_fail(edit->path, "opened", reterr);
    if (!realpath(edit->path, edit->target))
        return gw_token_file_fail(edit->path, "found", reterr);
    return PEG_OK;
}

/* The file has to be valid: a gateway would reject it with the new line, too. */
static peg_status read_old(struct edit *edit, peg_error *reterr)
{
    struct gw_token_table *table;
    peg_status status = gw_token_file_read(edit->fd, edit->path, &edit->text, reterr);

    if (!status)
        status = gw_token_table_parse(peg__buf_view(&edit->text), edit->path, &table, reterr);
    if (!status)
        gw_token_table_free(table);
    return status;
}

/* ---- the new one ---- */

static bool write_whole(int fd, peg_str bytes)
{
    while (bytes.len) {
        const ssize_t n = write(fd, bytes.ptr, bytes.len);

        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            bytes = peg__str_from(bytes, (size_t)n);
    }
    return true;
}

static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    char *slash;
    int fd;

    snprintf(folder, sizeof(folder), "%s", path);
    slash = strrchr(folder, '/');
    if (!slash)
        return;
    slash[slash == folder] = '\0';
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

static peg_status replace_file(struct edit *edit, peg_error *reterr)
{
    char fresh[PATH_MAX];
    const int n = snprintf(fresh, sizeof(fresh), "%s.XXXXXX", edit->target);
    int fd;
    bool is_good;

    if (n < 0 || (size_t)n >= sizeof(fresh)) {
        errno = ENAMETOOLONG;
        return gw_token_file_fail(edit->path, "written", reterr);
    }
    fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0)
        return gw_token_file_fail(edit->path, "written", reterr);
    is_good = fchmod(fd, edit->mode) == 0 && write_whole(fd, peg__buf_view(&edit->text)) &&
              fsync(fd) == 0 && rename(fresh, edit->target) == 0;
    if (!is_good) {
        gw_token_file_fail(edit->path, "written", reterr);
        unlink(fresh);
    }
    close(fd);
    if (is_good)
        sync_folder(edit->target);
    return is_good ? PEG_OK : PEG_EIO;
}

static peg_status add_token_line(struct edit *edit, const struct gw_new_token *add,
                                 peg_error *reterr)
{
    unsigned char digest[PEG_SHA256_BYTES];
    char hex[PEG_SHA256_HEX];
    struct gw_token_table *table;
    peg_status status;

    if (!peg__sha256(peg__str(add->token), digest))
        return peg__fail_nomem(reterr);
    peg__hex(digest, sizeof(digest), hex);
    if (edit->text.len && edit->text.ptr[edit->text.len - 1] != '\n')
        peg__buf_putc(&edit->text, '\n');
    peg__buf_printf(&edit->text, "%.*s sha256:%s%s\n", PEG_ARG(add->name), hex,
                    add->is_admin ? " admin" : "");
    if (edit->text.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    /* Is it still within the limits? */
    status = gw_token_table_parse(peg__buf_view(&edit->text), edit->path, &table, reterr);
    if (!status)
        gw_token_table_free(table);
    return status;
}

static void end_edit(struct edit *edit)
{
    peg__buf_free(&edit->text);
    if (edit->fd >= 0)
        close(edit->fd);
}

/* All but the change of the file; what it holds is for end_edit(), also after a failure. */
static peg_status prepare_edit(struct edit *edit, const struct gw_new_token *add, peg_error *reterr)
{
    peg_status status;

    if (!gw_token_name_is_good(add->name))
        return peg__fail(
            reterr, PEG_EINVAL, "E_TOKEN_NAME",
            "a token needs a name of 1 to %d of the characters A-Z a-z 0-9 _ . : @ / -",
            GW_TOKEN_NAME - 1);
    /* A file of that name would be made, and show the token to everybody who lists the folder. */
    if (peg__is_token_for_path(edit->path))
        return gw_token_file_fail(edit->path, "made", reterr);
    status = lock_file(edit, reterr);
    if (!status)
        status = read_old(edit, reterr);
    return status ? status : add_token_line(edit, add, reterr);
}

static struct edit edit_of(const char *path, int flags)
{
    return (struct edit){
        .path = path,
        .flags = flags,
        .fd = -1,
        .text = PEG__BUF(PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES + (128 << 10)),
    };
}

peg_status gw_token_check(const char *path, const struct gw_new_token *add, peg_error *reterr)
{
    struct edit edit = edit_of(path, O_CREAT);
    const peg_status status = prepare_edit(&edit, add, reterr);

    end_edit(&edit);
    return status;
}

peg_status gw_token_add(const char *path, const struct gw_new_token *add, peg_error *reterr)
{
    struct edit edit = edit_of(path, O_CREAT);
    peg_status status = prepare_edit(&edit, add, reterr);

    if (!status)
        status = replace_file(&edit, reterr);
    end_edit(&edit);
    return status;
}

peg_status gw_token_new(const char *path, peg_str name, char ret_token[GW_TOKEN_TEXT],
                        peg_error *reterr)
{
    char token[GW_TOKEN_TEXT];
    peg_status status = gw_token_make(token, reterr);

    if (!status)
        status = gw_token_add(path, &(struct gw_new_token){.name = name, .token = token}, reterr);
    if (!status)
        memcpy(ret_token, token, sizeof(token));
    return status;
}

/* ---- taking out ---- */

/* The lines that stay move up. */
static size_t remove_lines(struct peg__buf *text, peg_str name, peg_str hash)
{
    peg_str rest = peg__buf_view(text);
    size_t len = 0;
    size_t n = 0;

    while (rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        const size_t taken = end ? (size_t)(end - rest.ptr) + 1 : rest.len;

        if (gw_token_line_is(peg__strn(rest.ptr, end ? taken - 1 : taken), name, hash)) {
            n++;
        } else {
            memmove(text->ptr + len, rest.ptr, taken);
            len += taken;
        }
        rest = peg__str_from(rest, taken);
    }
    text->len = len;
    return n;
}

static peg_status reject_unknown_token(peg_str name, peg_str hash, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ENOTFOUND, "E_TOKEN_NAME",
                     "there is no token of '%.*s'%s%.*s in the file: `pegboard token list` shows "
                     "those that there are",
                     (int)(name.len < GW_TOKEN_NAME ? name.len : GW_TOKEN_NAME), name.ptr,
                     hash.len ? " with the hash " : "",
                     (int)(hash.len < PEG_SHA256_HEX ? hash.len : PEG_SHA256_HEX), hash.ptr);
}

peg_status gw_token_revoke(const char *path, peg_str name, peg_str hash, size_t *ret_n_revoked,
                           peg_error *reterr)
{
    struct edit edit = edit_of(path, 0);
    peg_status status = gw_token_name_is_good(name) ? lock_file(&edit, reterr)
                                                    : reject_unknown_token(name, hash, reterr);
    size_t n = 0;

    if (!status)
        status = read_old(&edit, reterr);
    if (!status) {
        n = remove_lines(&edit.text, name, hash);
        status = n ? replace_file(&edit, reterr) : reject_unknown_token(name, hash, reterr);
    }
    end_edit(&edit);
    if (!status)
        *ret_n_revoked = n;
    return status;
}
