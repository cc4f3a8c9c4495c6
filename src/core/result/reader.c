/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Three kinds of readers in one struct: bytes in memory, which every function knows and serves
 * without a call; an open file; and what a host made of its own functions. A memory reader over a
 * copy is one allocation.
 */

#include "core/result/result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"

/* A reader that does not know its length is read in pieces that grow from here. */
enum { FIRST_PIECE = 16 << 10 };

struct peg_reader {
    atomic_uint n_refs;
    peg_str view;       /* memory: all bytes; elsewhere ptr is NULL */
    peg_reader_ops ops; /* memory: only free, for bytes that were given away */
    void *user;
    char bytes[]; /* memory over a copy: the bytes and a NUL */
};

/* ---- files ------------------------------------------------------------------------------- */

struct open_file {
    int fd;
    uint64_t len; /* when it was opened */
};

static peg_status file_read_at(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
                               peg_error *reterr)
{
    const struct open_file *file = user;
    char *to = buffer;
    size_t done = 0;

    if (offset >= file->len) {
        *ret_n = 0;
        return PEG_OK;
    }
    if (n > file->len - offset)
        n = (size_t)(file->len - offset);
    while (done < n) {
        const ssize_t got = pread(file->fd, to + done, n - done, (off_t)(offset + done));

        if (got > 0)
            done += (size_t)got;
        else if (got == 0)
            return peg__fail(reterr, PEG_EIO, "E_FILE",
                             "the file is shorter than when it was opened; a file behind a reader "
                             "must not be changed in place");
        else if (errno != EINTR)
            return peg__fail(reterr, PEG_EIO, "E_FILE", "the file cannot be read: %m");
    }
    *ret_n = done;
    return PEG_OK;
}

static int64_t file_byte_length(void *user)
{
    const struct open_file *file = user;

    return (int64_t)file->len;
}

static void file_free(void *user)
{
    struct open_file *file = user;

    close(file->fd);
    peg__free(file);
}

peg_status peg__reader_from_fd(int fd, uint64_t len, peg_reader **ret_reader, peg_error *reterr)
{
    const peg_reader_ops ops = {
        .read_at = file_read_at, .byte_length = file_byte_length, .free = file_free};
    PEG_CLEANUP(peg__freep) struct open_file *file = peg__alloc(sizeof(*file));
    peg_status status;

    if (!file)
        return peg__fail_nomem(reterr);
    *file = (struct open_file){.fd = fd, .len = len};
    status = peg_reader_new(&ops, file, ret_reader, reterr);
    if (status)
        return status;
    file = NULL;
    return PEG_OK;
}

peg_status peg_reader_from_file(const char *path, peg_reader **ret_reader, peg_error *reterr)
{
    struct stat about;
    peg_status status;
    int fd;

    if (!path)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT", "path is required");
    /* Not blocking: a pipe without a writer must be refused, not waited for. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return peg__fail(reterr, PEG_EIO, "E_FILE", "'%s' cannot be opened: %m", path);
    if (fstat(fd, &about) != 0)
        status = peg__fail(reterr, PEG_EIO, "E_FILE", "'%s' cannot be opened: %m", path);
    else if (!S_ISREG(about.st_mode))
        status = peg__fail(reterr, PEG_EIO, "E_FILE",
                           "'%s' is no regular file; only those can be read again and again", path);
    else
        status = peg__reader_from_fd(fd, (uint64_t)about.st_size, ret_reader, reterr);
    if (status)
        close(fd);
    return status;
}

/* ---- memory ------------------------------------------------------------------------------ */

peg_status peg_reader_from_bytes(peg_str bytes, peg_reader **ret_reader, peg_error *reterr)
{
    peg_reader *reader = NULL;

    if (bytes.len < SIZE_MAX - sizeof(*reader))
        reader = peg__alloc(sizeof(*reader) + bytes.len + 1);
    if (!reader)
        return peg__fail_nomem(reterr);
    *reader = (peg_reader){.n_refs = 1, .view = {reader->bytes, bytes.len}};
    if (bytes.len)
        memcpy(reader->bytes, bytes.ptr, bytes.len);
    reader->bytes[bytes.len] = '\0';
    *ret_reader = reader;
    return PEG_OK;
}

peg_status peg__reader_from_owned(char *bytes, size_t len, peg_reader **ret_reader,
                                  peg_error *reterr)
{
    peg_reader *reader = peg__alloc(sizeof(*reader));

    if (!reader)
        return peg__fail_nomem(reterr);
    *reader =
        (peg_reader){.n_refs = 1, .view = {bytes, len}, .ops = {.free = peg__free}, .user = bytes};
    *ret_reader = reader;
    return PEG_OK;
}

bool peg__reader_view(const peg_reader *reader, peg_str *ret_bytes)
{
    if (!reader->view.ptr)
        return false;
    *ret_bytes = reader->view;
    return true;
}

static size_t view_read_at(peg_str view, uint64_t offset, void *buffer, size_t n)
{
    if (offset >= view.len)
        return 0;
    if (n > view.len - offset)
        n = view.len - (size_t)offset;
    if (n)
        memcpy(buffer, view.ptr + offset, n);
    return n;
}

/* ---- every reader ------------------------------------------------------------------------ */

peg_status peg_reader_new(const peg_reader_ops *ops, void *user, peg_reader **ret_reader,
                          peg_error *reterr)
{
    peg_reader *reader;

    if (!ops || !ops->read_at || !ops->byte_length)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "a reader needs read_at and byte_length; missing: %s",
                         ops && ops->read_at       ? "byte_length"
                         : ops && ops->byte_length ? "read_at"
                                                   : "read_at, byte_length");
    reader = peg__alloc(sizeof(*reader));
    if (!reader)
        return peg__fail_nomem(reterr);
    *reader = (peg_reader){.n_refs = 1, .ops = *ops, .user = user};
    *ret_reader = reader;
    return PEG_OK;
}

void *peg__reader_user(const peg_reader *reader, const peg_reader_ops *ops)
{
    return reader->ops.read_at == ops->read_at ? reader->user : NULL;
}

PEG__DEFINE_REF(peg_reader)

peg_reader *peg_reader_unref(peg_reader *reader)
{
    if (!reader || !peg__refs_drop(&reader->n_refs))
        return NULL;
    if (reader->ops.free)
        reader->ops.free(reader->user);
    peg__free(reader);
    return NULL;
}

/* A host may fail without a word, or claim more than it was asked for. */
static peg_status host_read_at(peg_reader *reader, uint64_t offset, void *buffer, size_t n,
                               size_t *ret_n, peg_error *reterr)
{
    peg_error why = {0};
    size_t got = 0;
    const peg_status status = reader->ops.read_at(reader->user, offset, buffer, n, &got, &why);

    if (status) {
        if (!why.code)
            peg__fail(&why, status, "E_CALLBACK",
                      "the reader failed at byte %llu and did not say why",
                      (unsigned long long)offset);
        if (reterr)
            *reterr = why;
        return status;
    }
    if (got > n)
        return peg__fail(reterr, PEG_EHOST, "E_CALLBACK",
                         "the reader was asked for %zu bytes and claims to have read %zu: its "
                         "read_at is broken",
                         n, got);
    *ret_n = got;
    return PEG_OK;
}

peg_status peg_reader_read_at(peg_reader *reader, uint64_t offset, void *buffer, size_t n,
                              size_t *ret_n, peg_error *reterr)
{
    if (!reader->view.ptr)
        return host_read_at(reader, offset, buffer, n, ret_n, reterr);
    *ret_n = view_read_at(reader->view, offset, buffer, n);
    return PEG_OK;
}

int64_t peg_reader_byte_length(peg_reader *reader)
{
    int64_t len;

    if (reader->view.ptr)
        return (int64_t)reader->view.len;
    len = reader->ops.byte_length(reader->user);
    return len < 0 ? -1 : len;
}

static peg_status fail_over_max(size_t max, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_READER_TOO_LARGE",
                     "there are more than %zu bytes (max); read a part of it, or allow more", max);
}

static peg_status read_known(peg_reader *reader, size_t len, char **ret_bytes, size_t *ret_len,
                             peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *bytes = peg__alloc(len + 1);
    peg_status status;
    size_t got = 0;

    if (!bytes)
        return peg__fail_nomem(reterr);
    status = len ? peg_reader_read_at(reader, 0, bytes, len, &got, reterr) : PEG_OK;
    if (status)
        return status;
    if (got != len)
        return peg__fail(reterr, PEG_EHOST, "E_CALLBACK",
                         "the reader said that it has %zu bytes and gave %zu: its byte_length or "
                         "its read_at is broken",
                         len, got);
    bytes[len] = '\0';
    *ret_bytes = bytes;
    if (ret_len)
        *ret_len = len;
    bytes = NULL;
    return PEG_OK;
}

/* One piece more. At the maximum one byte is asked for, only to learn whether there is one. */
static peg_status read_next_piece(peg_reader *reader, struct peg__buf *out, bool *ret_ended,
                                  peg_error *reterr)
{
    const size_t left = out->max - out->len;
    size_t want = out->len > FIRST_PIECE ? out->len : FIRST_PIECE;
    char probe;
    char *to = &probe;
    size_t got = 0;
    peg_status status;

    if (want > left)
        want = left;
    if (want > 0)
        to = peg__buf_reserve(out, want);
    if (!to)
        return peg__fail_nomem(reterr);
    status = peg_reader_read_at(reader, out->len, to, want ? want : 1, &got, reterr);
    if (status)
        return status;
    if (want == 0 && got > 0)
        return fail_over_max(out->max, reterr);
    out->len += got;
    *ret_ended = got < want || want == 0;
    return PEG_OK;
}

static peg_status read_unknown(peg_reader *reader, size_t max, char **ret_bytes, size_t *ret_len,
                               peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(max);
    bool ended = false;

    while (!ended) {
        const peg_status status = read_next_piece(reader, &out, &ended, reterr);

        if (status) {
            peg__buf_free(&out);
            return status;
        }
    }
    peg__buf_add(&out, "", 0); /* the NUL */
    return peg__buf_take(&out, ret_bytes, ret_len, reterr);
}

peg_status peg_reader_read_all(peg_reader *reader, size_t max, char **ret_bytes, size_t *ret_len,
                               peg_error *reterr)
{
    const int64_t len = peg_reader_byte_length(reader);

    if (max > SIZE_MAX / 4)
        max = SIZE_MAX / 4; /* no memory has more, and sums of lengths cannot overflow */
    if (len < 0)
        return read_unknown(reader, max, ret_bytes, ret_len, reterr);
    if ((uint64_t)len > max)
        return fail_over_max(max, reterr);
    return read_known(reader, (size_t)len, ret_bytes, ret_len, reterr);
}
