/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_COMMON_H
#define PEGBOARD_COMMON_H

/*
 * What every pegboard header shares: status, error, bytes with a length.
 *
 * Rules that hold for every function of the library:
 *
 *   - Functions that can fail return peg_status. ret_* parameters are written
 *     only on success, reterr only on failure; reterr may always be NULL.
 *   - _new gives the caller one reference or sole ownership; _free and _unref
 *     accept NULL and return NULL, so `p = peg_x_free(p)` is always right.
 *   - A peg_str or const pointer handed out is borrowed; the comment says from
 *     whom, and it is valid until that owner is freed or changed.
 *   - A tool that fails is a successful call with a failed result. peg_status
 *     reports only what went wrong with pegboard itself.
 *   - The library writes to no terminal, touches no file and starts no thread or
 *     process that the host did not ask for (a file store, a pool, a command).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEG_API __attribute__((visibility("default")))
#define PEG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define PEG_MUST_USE __attribute__((warn_unused_result))
/* Calls fn with the address of the variable when its scope ends: pegboard/cleanup.h has one for
 * each type. */
#define PEG_CLEANUP(fn) __attribute__((cleanup(fn)))
/* Defines fn##p for PEG_CLEANUP, from a fn that accepts NULL. */
#define PEG_DEFINE_CLEANUP(type, fn)                                                               \
    static inline void fn##p(type **p)                                                             \
    {                                                                                              \
        fn(*p);                                                                                    \
    }

typedef enum peg_status {
    PEG_OK = 0,
    PEG_EINVAL,       /* a documented precondition was broken by the caller */
    PEG_ENOMEM,       /* allocation failed; every object is as it was before */
    PEG_EEXISTS,      /* the name is taken */
    PEG_ENOTFOUND,    /* there is no such thing */
    PEG_EPARSE,       /* text that is not what it should be: JSON, YAML, a path */
    PEG_ESCHEMA,      /* a schema does not compile, or a value violates one */
    PEG_ELIMIT,       /* a limit was reached; the message names it */
    PEG_ECANCELED,    /* the host asked to stop */
    PEG_ETIMEOUT,     /* a deadline passed */
    PEG_ESTATE,       /* right call, wrong moment: already signalled, already settled */
    PEG_EIO,          /* the system refused: a file, a process, randomness */
    PEG_EHOST,        /* a callback of the host failed: a middleware, an executor, a store */
    PEG_EUNSUPPORTED, /* the host has not provided what this needs */
} peg_status;

/* Why a call failed. Plain data: lives on the stack, never freed. */
typedef struct peg_error {
    peg_status status;
    const char *code;  /* stable name such as "E_JSON_SYNTAX"; static, never NULL */
    const char *cause; /* code of the error behind it, "" if none; its words end the message */
    size_t offset;     /* parse errors: byte offset of the place, else 0 */
    unsigned line;     /* parse errors: from 1; 0 where no text is involved */
    unsigned column;   /* parse errors: from 1, in bytes */
    char where[160];   /* JSON Pointer into the offending value, "" if none */
    char message[320]; /* one sentence, no newline, that says what to do */
} peg_error;

/* Bytes with a length: not NUL-terminated, may contain NUL. */
typedef struct peg_str {
    const char *ptr;
    size_t len;
} peg_str;

/* For printf: printf("hello " PEG_FMT "\n", PEG_ARG(name)). Prints up to a NUL, at most INT_MAX
 * bytes. */
#define PEG_FMT "%.*s"
#define PEG_ARG(s) (int)(s).len, (s).ptr

/* A NUL-terminated string as a peg_str; NULL gives the empty one. */
PEG_API peg_str peg_cstr(const char *s);

/* A short English name of a status, such as "limit"; static. */
PEG_API const char *peg_status_name(peg_status status);

/* Frees text that a function of this library handed over. Accepts NULL. */
PEG_API void *peg_free(void *memory);

/* The version of the library that is linked, such as "0.1.0"; static. */
PEG_API const char *peg_version(void);

#ifdef __cplusplus
}
#endif
#endif
