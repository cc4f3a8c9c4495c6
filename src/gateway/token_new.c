/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A new token. The file is written anew beside the old one and takes its place, so that a gateway
 * which reads it meanwhile, or a crash, finds one or the other. Two who add at the same time take
 * turns by a lock on the file that stands; whoever got it looks whether that file still does.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/token.h"
#include "gateway/token_file.h"

enum { TOKEN_BYTES = 32, MAX_TRIES = 100 };

/* What has to be given back, in any state. */
struct adding {
    const char *path;
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

/* ---- the file that stands ------------------------------------------------------------------- */

/* 1: locked, and it is the one under that name; 0: it is another one by now; -1: errno. */
static int lock_once(struct adding *a)
{
    struct stat held;
    struct stat named;

    a->fd = open(a->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (a->fd < 0 || flock(a->fd, LOCK_EX) != 0 || fstat(a->fd, &held) != 0)
        return -1;
    if (stat(a->path, &named) == 0 && held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
        a->mode = held.st_mode & 0777;
        return 1;
    }
    close(a->fd);
    a->fd = -1;
    return 0;
}

static peg_status lock(struct adding *a, peg_error *reterr)
{
    int got = 0;

    for (int i = 0; i < MAX_TRIES && got == 0; i++)
        got = lock_once(a);
    if (got == 0)
        errno = EBUSY;
    if (got != 1)
        return gw_token_file_fail(a->path, "opened", reterr);
    if (!realpath(a->path, a->target))
        return gw_token_file_fail(a->path, "found", reterr);
    return PEG_OK;
}

/* What stands there has to be right: adding to a file that no gateway takes helps nobody. */
static peg_status read_old(struct adding *a, peg_error *reterr)
{
    struct gw_token_table *table;
    peg_status status = gw_token_file_read(a->fd, a->path, &a->text, reterr);

    if (!status)
        status = gw_token_table_parse(peg__buf_view(&a->text), a->path, &table, reterr);
    if (!status)
        gw_token_table_free(table);
    return status;
}

/* ---- the new one ---------------------------------------------------------------------------- */

static bool write_all(int fd, peg_str bytes)
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

static peg_status replace(struct adding *a, peg_error *reterr)
{
    char fresh[PATH_MAX];
    const int n = snprintf(fresh, sizeof(fresh), "%s.XXXXXX", a->target);
    int fd;
    bool is_good;

    if (n < 0 || (size_t)n >= sizeof(fresh)) {
        errno = ENAMETOOLONG;
        return gw_token_file_fail(a->path, "written", reterr);
    }
    fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0)
        return gw_token_file_fail(a->path, "written", reterr);
    is_good = fchmod(fd, a->mode) == 0 && write_all(fd, peg__buf_view(&a->text)) &&
              fsync(fd) == 0 && rename(fresh, a->target) == 0;
    if (!is_good) {
        gw_token_file_fail(a->path, "written", reterr);
        unlink(fresh);
    }
    close(fd);
    if (is_good)
        sync_folder(a->target);
    return is_good ? PEG_OK : PEG_EIO;
}

static peg_status add_line(struct adding *a, peg_str name, const char *token, peg_error *reterr)
{
    unsigned char digest[PEG_SHA256_BYTES];
    char hex[PEG_SHA256_HEX];
    struct gw_token_table *table;
    peg_status status;

    if (!peg__sha256(peg__str(token), digest))
        return peg__fail_nomem(reterr);
    peg__hex(digest, sizeof(digest), hex);
    if (a->text.len && a->text.ptr[a->text.len - 1] != '\n')
        peg__buf_putc(&a->text, '\n');
    peg__buf_printf(&a->text, "%.*s sha256:%s\n", PEG_ARG(name), hex);
    if (a->text.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    /* Is it still within the limits? */
    status = gw_token_table_parse(peg__buf_view(&a->text), a->path, &table, reterr);
    if (!status)
        gw_token_table_free(table);
    return status;
}

static void drop(struct adding *a)
{
    peg__buf_free(&a->text);
    if (a->fd >= 0)
        close(a->fd);
}

/* All but the change of the file; what it holds is for drop(), also after a failure. */
static peg_status prepare(struct adding *a, peg_str name, const char *token, peg_error *reterr)
{
    peg_status status;

    if (!gw_token_name_is_good(name))
        return peg__fail(
            reterr, PEG_EINVAL, "E_TOKEN_NAME",
            "a token needs a name of 1 to %d of the characters A-Z a-z 0-9 _ . : @ / -",
            GW_TOKEN_NAME - 1);
    /* A file of that name would be made, and show the token to everybody who lists the folder. */
    if (peg__is_token_for_path(a->path))
        return gw_token_file_fail(a->path, "made", reterr);
    status = lock(a, reterr);
    if (!status)
        status = read_old(a, reterr);
    return status ? status : add_line(a, name, token, reterr);
}

static struct adding adding_to(const char *path)
{
    return (struct adding){
        .path = path,
        .fd = -1,
        .text = PEG__BUF(PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES + (128 << 10)),
    };
}

peg_status gw_token_check(const char *path, peg_str name, const char *token, peg_error *reterr)
{
    struct adding a = adding_to(path);
    const peg_status status = prepare(&a, name, token, reterr);

    drop(&a);
    return status;
}

peg_status gw_token_add(const char *path, peg_str name, const char *token, peg_error *reterr)
{
    struct adding a = adding_to(path);
    peg_status status = prepare(&a, name, token, reterr);

    if (!status)
        status = replace(&a, reterr);
    drop(&a);
    return status;
}

peg_status gw_token_new(const char *path, peg_str name, char ret_token[GW_TOKEN_TEXT],
                        peg_error *reterr)
{
    char token[GW_TOKEN_TEXT];
    peg_status status = gw_token_make(token, reterr);

    if (!status)
        status = gw_token_add(path, name, token, reterr);
    if (!status)
        memcpy(ret_token, token, sizeof(token));
    return status;
}
