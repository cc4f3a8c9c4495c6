/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An artifact. Making one costs an allocation; what is found out about it is found out when
 * somebody asks, under its lock, and published with a release store, so that those who come later
 * need no lock:
 *
 *   bytes   those of a reader in memory, else read whole
 *   count   how many lines; all that a handle needs, so it is found out without keeping the bytes
 *   lines   the same, and where every 64th of them starts
 *   parsed  what the kind made of it; under a lock of its own, because parsing asks for the others
 *
 * A failure is not kept: the next question tries again.
 */

#include "core/artifact/artifact.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "core/result/result.h"

enum { LINES_PER_MARK = 64, COUNT_PIECE = 64 << 10 };

/* Offsets fit 32 bits because PEG_LIMIT_ARTIFACT_BYTES does. */
struct line_index {
    size_t n_marks;
    size_t capacity;
    uint32_t *marks; /* marks[i]: where line i * LINES_PER_MARK starts */
};

struct peg_artifact {
    atomic_uint n_refs;
    const peg_artifact_kind *kind;
    peg_reader *reader;

    pthread_mutex_t lock; /* while bytes or lines are found out */
    atomic_bool has_bytes;
    atomic_bool has_count;
    atomic_bool has_lines;
    size_t n_lines;
    char *read; /* owned; NULL if the reader has the bytes in memory */
    peg_str bytes;
    struct line_index lines;

    pthread_mutex_t parse_lock; /* taken before `lock` */
    atomic_bool is_parsed;
    void *parsed;
};

/* ---- making it --------------------------------------------------------------------------- */

peg_status peg__artifact_new(const peg_artifact_kind *kind, peg_reader *reader,
                             peg_artifact **ret_artifact, peg_error *reterr)
{
    peg_artifact *artifact = peg__alloc(sizeof(*artifact));

    if (!artifact)
        return peg__fail_nomem(reterr);
    *artifact = (peg_artifact){.n_refs = 1,
                               .kind = kind ? kind : &peg_artifact_text,
                               .reader = peg_reader_ref(reader),
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .parse_lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};
    *ret_artifact = artifact;
    return PEG_OK;
}

peg_status peg_artifact_new(const peg_artifact_kind *kind, peg_reader *reader,
                            peg_artifact **ret_artifact, peg_error *reterr)
{
    if (!reader)
        return peg__fail(reterr, PEG_EINVAL, "E_NOT_A_SPOOL_READER",
                         "an artifact needs a reader; make one with peg_reader_from_bytes() or "
                         "take the one that peg_spool_write() gives");
    if (kind) {
        const peg_status status = peg__kind_check(kind, false, reterr);

        if (status)
            return status;
    }
    return peg__artifact_new(kind, reader, ret_artifact, reterr);
}

PEG__DEFINE_REF(peg_artifact)

/* The kind whose parse makes what is handed out: there is at most one in a chain. */
static const peg_artifact_kind *kind_that_parses(const peg_artifact_kind *kind)
{
    while (kind && !kind->parse)
        kind = peg__kind_base(kind);
    return kind;
}

static void free_parsed(peg_artifact *artifact)
{
    const peg_artifact_kind *kind = kind_that_parses(artifact->kind);

    if (kind && kind->parsed_free && artifact->parsed)
        kind->parsed_free(artifact->parsed);
}

peg_artifact *peg_artifact_unref(peg_artifact *artifact)
{
    if (!artifact || !peg__refs_drop(&artifact->n_refs))
        return NULL;
    free_parsed(artifact);
    pthread_mutex_destroy(&artifact->parse_lock);
    pthread_mutex_destroy(&artifact->lock);
    peg__free(artifact->lines.marks);
    peg__free(artifact->read);
    peg_reader_unref(artifact->reader);
    peg__free(artifact);
    return NULL;
}

PEG__DEFINE_GETTER(const peg_artifact_kind *, peg_artifact_kind_of, peg_artifact, kind)
PEG__DEFINE_GETTER(peg_reader *, peg_artifact_reader, peg_artifact, reader)

/* ---- bytes ------------------------------------------------------------------------------- */

static peg_status fail_artifact_too_large(peg_error *reterr)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_READER_TOO_LARGE",
                     "the artifact has more than %d bytes (artifact_bytes); read parts of it "
                     "through its reader",
                     PEG_LIMIT_ARTIFACT_BYTES);
}

/* Under the lock. */
static peg_status find_bytes(peg_artifact *artifact, peg_error *reterr)
{
    peg_str bytes;
    peg_status status;

    if (atomic_load_explicit(&artifact->has_bytes, memory_order_relaxed))
        return PEG_OK;
    if (peg_reader_byte_length(artifact->reader) > PEG_LIMIT_ARTIFACT_BYTES)
        return fail_artifact_too_large(reterr);
    if (!peg__reader_view(artifact->reader, &bytes)) {
        status = peg_reader_read_all(artifact->reader, PEG_LIMIT_ARTIFACT_BYTES, &artifact->read,
                                     &bytes.len, reterr);
        if (status)
            return status;
        bytes.ptr = artifact->read;
    }
    artifact->bytes = bytes;
    atomic_store_explicit(&artifact->has_bytes, true, memory_order_release);
    return PEG_OK;
}

peg_status peg_artifact_bytes(peg_artifact *artifact, peg_str *ret_bytes, peg_error *reterr)
{
    peg_status status = PEG_OK;

    if (!atomic_load_explicit(&artifact->has_bytes, memory_order_acquire)) {
        pthread_mutex_lock(&artifact->lock);
        status = find_bytes(artifact, reterr);
        pthread_mutex_unlock(&artifact->lock);
    }
    if (status == PEG_OK)
        *ret_bytes = artifact->bytes;
    return status;
}

int64_t peg_artifact_byte_length(peg_artifact *artifact)
{
    const int64_t len = peg_reader_byte_length(artifact->reader);
    peg_str bytes;

    if (len >= 0)
        return len;
    return peg_artifact_bytes(artifact, &bytes, NULL) == PEG_OK ? (int64_t)bytes.len : -1;
}

/* ---- lines ------------------------------------------------------------------------------- */

static bool add_mark(struct line_index *index, size_t offset)
{
    if (!PEG__RESERVE(index->marks, index->n_marks + 1, index->capacity))
        return false;
    index->marks[index->n_marks++] = (uint32_t)offset;
    return true;
}

/* The high bit of each byte of a word that is LF. */
static uint64_t newlines_in(const char *at)
{
    const uint64_t low7 = UINT64_C(0x7F7F7F7F7F7F7F7F);
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    word ^= UINT64_C(0x0A0A0A0A0A0A0A0A);
    return ~(((word & low7) + low7) | word | low7);
}

/* Where the n-th (from 1) LF at or after `at` is; there are that many. */
static const char *nth_newline(const char *at, const char *end, size_t n)
{
    while (n-- > 0)
        at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
    return at - 1;
}

/* Counts LFs word by word, which takes the same time however short the lines are, and looks closer
 * only at words where a marked line starts. */
static bool index_lines(peg_str bytes, struct line_index *index, size_t *ret_n_lines)
{
    const char *end = bytes.ptr + bytes.len;
    size_t n_newlines = 0;
    size_t i = 0;

    if (bytes.len > 0 && !add_mark(index, 0))
        return false;
    for (; bytes.len - i >= 8; i += 8) {
        const size_t next = index->n_marks * LINES_PER_MARK - n_newlines;
        const size_t n = (size_t)__builtin_popcountll(newlines_in(bytes.ptr + i));

        if (n >= next &&
            !add_mark(index, (size_t)(nth_newline(bytes.ptr + i, end, next) + 1 - bytes.ptr)))
            return false;
        n_newlines += n;
    }
    for (; i < bytes.len; i++) {
        if (bytes.ptr[i] != '\n')
            continue;
        n_newlines++;
        if (n_newlines % LINES_PER_MARK == 0 && !add_mark(index, i + 1))
            return false;
    }
    *ret_n_lines = bytes.len > 0 ? n_newlines + 1 : 0;
    return true;
}

/* Under the lock. Those who read the count saw has_count, so it is written once. */
static void set_count(peg_artifact *artifact, size_t n_lines)
{
    if (atomic_load_explicit(&artifact->has_count, memory_order_relaxed))
        return;
    artifact->n_lines = n_lines;
    atomic_store_explicit(&artifact->has_count, true, memory_order_release);
}

/* Under the lock. */
static peg_status find_lines(peg_artifact *artifact, peg_error *reterr)
{
    struct line_index index = {0};
    size_t n_lines;
    peg_status status;

    if (atomic_load_explicit(&artifact->has_lines, memory_order_relaxed))
        return PEG_OK;
    status = find_bytes(artifact, reterr);
    if (status)
        return status;
    if (!index_lines(artifact->bytes, &index, &n_lines)) {
        peg__free(index.marks);
        return peg__fail_nomem(reterr);
    }
    artifact->lines = index;
    set_count(artifact, n_lines);
    atomic_store_explicit(&artifact->has_lines, true, memory_order_release);
    return PEG_OK;
}

static peg_status need_lines(peg_artifact *artifact, peg_error *reterr)
{
    peg_status status;

    if (atomic_load_explicit(&artifact->has_lines, memory_order_acquire))
        return PEG_OK;
    pthread_mutex_lock(&artifact->lock);
    status = find_lines(artifact, reterr);
    pthread_mutex_unlock(&artifact->lock);
    return status;
}

static size_t count_newlines(const char *piece, size_t len)
{
    size_t n = 0;
    size_t i = 0;

    for (; len - i >= 8; i += 8)
        n += (size_t)__builtin_popcountll(newlines_in(piece + i));
    for (; i < len; i++)
        n += piece[i] == '\n';
    return n;
}

/* Under the lock: piece by piece, each of which is forgotten. */
static peg_status count_through_reader(peg_artifact *artifact, char *piece, peg_error *reterr)
{
    size_t n_newlines = 0;
    uint64_t len = 0;
    size_t got;

    do {
        const peg_status status =
            peg_reader_read_at(artifact->reader, len, piece, COUNT_PIECE, &got, reterr);

        if (status)
            return status;
        len += got;
        if (len > PEG_LIMIT_ARTIFACT_BYTES)
            return fail_artifact_too_large(reterr);
        n_newlines += count_newlines(piece, got);
    } while (got == COUNT_PIECE);
    set_count(artifact, len > 0 ? n_newlines + 1 : 0);
    return PEG_OK;
}

/* Under the lock. Bytes that are in memory are indexed at once: somebody will ask for them. */
static peg_status find_count(peg_artifact *artifact, peg_error *reterr)
{
    char *piece;
    peg_str view;
    peg_status status;

    if (atomic_load_explicit(&artifact->has_count, memory_order_relaxed))
        return PEG_OK;
    if (atomic_load_explicit(&artifact->has_bytes, memory_order_relaxed) ||
        peg__reader_view(artifact->reader, &view))
        return find_lines(artifact, reterr);
    if (peg_reader_byte_length(artifact->reader) > PEG_LIMIT_ARTIFACT_BYTES)
        return fail_artifact_too_large(reterr);
    piece = peg__alloc(COUNT_PIECE);
    if (!piece)
        return peg__fail_nomem(reterr);
    status = count_through_reader(artifact, piece, reterr);
    peg__free(piece);
    return status;
}

peg_status peg_artifact_line_count(peg_artifact *artifact, size_t *ret_n, peg_error *reterr)
{
    peg_status status = PEG_OK;

    if (!atomic_load_explicit(&artifact->has_count, memory_order_acquire)) {
        pthread_mutex_lock(&artifact->lock);
        status = find_count(artifact, reterr);
        pthread_mutex_unlock(&artifact->lock);
    }
    if (status == PEG_OK)
        *ret_n = artifact->n_lines;
    return status;
}

peg_status peg__artifact_lines(peg_artifact *artifact, size_t first, struct peg__lines *ret_lines,
                               peg_error *reterr)
{
    const struct line_index *index = &artifact->lines;
    const peg_status status = need_lines(artifact, reterr);
    struct peg__lines lines = {0};

    if (status)
        return status;
    if (first < artifact->n_lines) {
        const size_t n_skipped = first % LINES_PER_MARK;

        lines.at = artifact->bytes.ptr + index->marks[first / LINES_PER_MARK];
        lines.end = artifact->bytes.ptr + artifact->bytes.len;
        if (n_skipped > 0)
            lines.at = nth_newline(lines.at, lines.end, n_skipped) + 1;
    }
    *ret_lines = lines;
    return PEG_OK;
}

bool peg__lines_next(struct peg__lines *lines, peg_str *ret_line)
{
    const char *newline;

    if (!lines->at)
        return false;
    ret_line->ptr = lines->at;
    newline =
        lines->at == lines->end ? NULL : memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    ret_line->len = (size_t)((newline ? newline : lines->end) - lines->at);
    lines->at = newline ? newline + 1 : NULL;
    return true;
}

peg_status peg_artifact_line(peg_artifact *artifact, size_t i, peg_str *ret_line, peg_error *reterr)
{
    struct peg__lines lines;
    peg_str line = {0};
    const peg_status status = peg__artifact_lines(artifact, i, &lines, reterr);

    if (status)
        return status;
    peg__lines_next(&lines, &line);
    *ret_line = line;
    return PEG_OK;
}

/* ---- parsed ------------------------------------------------------------------------------ */

/* Under parse_lock. A parse that failed is not kept: memory may be there the next time, and a text
 * that is malformed is soon found malformed again. */
static peg_status find_parsed(peg_artifact *artifact, peg_error *reterr)
{
    const peg_artifact_kind *kind = kind_that_parses(artifact->kind);
    peg_error why = {0};
    void *parsed = NULL;
    peg_status status;

    if (atomic_load_explicit(&artifact->is_parsed, memory_order_relaxed))
        return PEG_OK;
    if (!kind)
        return peg__fail(reterr, PEG_EUNSUPPORTED, "E_ARTIFACT_NOT_PARSED",
                         "artifacts of kind '%s' have no parsed form; read their bytes or lines",
                         artifact->kind->name);
    status = kind->parse(artifact, &parsed, &why);
    if (status) {
        if (!why.code)
            peg__fail(&why, status, "E_CALLBACK",
                      "the artifact cannot be parsed as '%s', and its kind did not say why",
                      kind->name);
        if (reterr)
            *reterr = why;
        return status;
    }
    artifact->parsed = parsed;
    atomic_store_explicit(&artifact->is_parsed, true, memory_order_release);
    return PEG_OK;
}

peg_status peg_artifact_parsed(peg_artifact *artifact, void **ret_parsed, peg_error *reterr)
{
    peg_status status = PEG_OK;

    if (!atomic_load_explicit(&artifact->is_parsed, memory_order_acquire)) {
        if (pthread_mutex_lock(&artifact->parse_lock) == EDEADLK)
            return peg__fail(reterr, PEG_ESTATE, "E_WRONG_STATE",
                             "the parse of kind '%s' asks for its own result",
                             artifact->kind->name);
        status = find_parsed(artifact, reterr);
        pthread_mutex_unlock(&artifact->parse_lock);
    }
    if (status == PEG_OK)
        *ret_parsed = artifact->parsed;
    return status;
}
