/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_FILE_INTERNAL_H
#define PEG_TURN_FILE_INTERNAL_H

/* Shared by the files that read and write turn files. */

#include <stddef.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "pegboard/json.h"
#include "pegboard/reader.h"
#include "pegboard/turn.h"
#include "pegboard/turn_file.h"
#include "turn/file/file.h"

/*
 * Finds the call that a result answers if it has only the vendor's call id, which may repeat: the
 * first one before it with that id and without an answer, else the last one. Writers leave out what
 * readers can find this way, so both go through here, block by block in order.
 *
 * Owned; the blocks are borrowed.
 */

struct peg__call_match {
    struct peg__map by_call_id;  /* -> chain */
    struct peg__map by_block_id; /* -> entry */
    struct peg__arena arena;
};

#define PEG__CALL_MATCH                                                                            \
    {                                                                                              \
        .by_call_id = PEG__MAP(PEG_LIMIT_TURN_BLOCKS),                                             \
        .by_block_id = PEG__MAP(PEG_LIMIT_TURN_BLOCKS)                                             \
    }

/* A call block, which outlives the match. PEG_ENOMEM. */
peg_status peg__call_match_add(struct peg__call_match *match, const peg_block *call) PEG_MUST_USE;
/* The call that a result with this call id would answer, or NULL. */
const peg_block *peg__call_match_infer(struct peg__call_match *match, peg_str call_id);
/* The call block of an id, or NULL. */
const peg_block *peg__call_match_find(const struct peg__call_match *match, peg_str block_id);
/* There is a result for the call block of this id, if there is one. */
void peg__call_match_answer(struct peg__call_match *match, peg_str block_id);
void peg__call_match_free(struct peg__call_match *match);

/*
 * The members of an object, gathered in any order and written in the order of their names, so that
 * the same thing has the same bytes however it came about. Names and values are borrowed. Running
 * out of memory sticks and is reported when they are written.
 *
 * Owned; starts as {0}.
 */

/* Adds one value to the builder. */
typedef peg_status (*peg__field_fn)(const void *self, peg_json_builder *b, peg_error *reterr);

/* Nothing if there is no function. */
struct peg__made {
    peg__field_fn make;
    const void *self;
};

struct peg__field {
    peg_str name;
    enum {
        PEG__FIELD_STRING,
        PEG__FIELD_INTEGER,
        PEG__FIELD_BOOL,
        PEG__FIELD_JSON, /* sorted at every level; NULL is null */
        PEG__FIELD_MADE, /* by a function */
    } type;
    union {
        peg_str string;
        int64_t integer;
        bool truth;
        const peg_json *json;
        struct peg__made made;
    } u;
};

struct peg__fields {
    struct peg__field *items;
    size_t n;
    size_t capacity;
    bool is_out_of_memory;
};

void peg__fields_string(struct peg__fields *fields, const char *name, peg_str string);
/* NULL is null. */
void peg__fields_json(struct peg__fields *fields, const char *name, const peg_json *value);
void peg__fields_made(struct peg__fields *fields, const char *name, peg__field_fn make,
                      const void *self);
/* Every member of an object, each in place of a field of its name. Nothing if
 * there is no object. */
void peg__fields_members(struct peg__fields *fields, const peg_json *object);

/* One member, by its key, in place of one of the first n_before fields. */
void peg__fields_member(struct peg__fields *fields, const peg_json *key, size_t n_before);

/* Adds an object with all of them. What a function fails with, PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__fields_write(struct peg__fields *fields, peg_json_builder *b, peg_error *reterr);
/* The same into an object that is open. */
peg_status peg__fields_write_members(struct peg__fields *fields, peg_json_builder *b,
                                     peg_error *reterr);
void peg__fields_free(struct peg__fields *fields);

struct peg__in;

/*
 * The members of an object in a file, in one table for reading and writing. Each has its place in a
 * definition (peg_record_def, peg_media_def, ...); what is no plain value is read and written by
 * hand. The last row has no name.
 */
enum peg__member_kind {
    PEG__MEMBER_ODD,     /* by hand */
    PEG__MEMBER_MADE,    /* struct peg__made; read by hand */
    PEG__MEMBER_ID,      /* peg_str; written if it is not empty; read by hand */
    PEG__MEMBER_STRING,  /* peg_str; written if ptr is set */
    PEG__MEMBER_TEXT,    /* peg_str; written if it is not empty */
    PEG__MEMBER_CSTRING, /* const char *; written if it is not NULL */
    PEG__MEMBER_OPTION,  /* const char *; an empty one is as good as none */
    PEG__MEMBER_BOOL,    /* written if true */
    PEG__MEMBER_COUNT,   /* unsigned; written if it is not 0 */
    PEG__MEMBER_INTEGER, /* int64_t, not negative; written if it is not 0 */
    PEG__MEMBER_LENGTH,  /* the same, written always */
    PEG__MEMBER_ENUM,    /* written if it is not 0 */
    PEG__MEMBER_ARRAY,   /* const peg_json *; written if it is not NULL */
};

/* Names of an enum from 1 to `last`; 0 is none of them. */
struct peg__enum {
    const char *(*name)(unsigned value);
    unsigned last;
};

struct peg__member {
    const char *name;
    unsigned len; /* of the name */
    enum peg__member_kind kind;
    unsigned offset;
    const char *field; /* what an error of the definition has as `where` */
    const struct peg__enum *names;
};

#define PEG__FULL_ROW(name_, field_, kind_, offset_, names_)                                       \
    {                                                                                              \
        name_, sizeof(name_) - 1, PEG__MEMBER_##kind_, offset_, field_, names_                     \
    }
#define PEG__ROW(type, field, name, kind)                                                          \
    PEG__FULL_ROW(name, "/" #field, kind, offsetof(type, field), NULL)
#define PEG__ENUM_ROW(type, field, name, names)                                                    \
    PEG__FULL_ROW(name, "/" #field, ENUM, offsetof(type, field), names)
#define PEG__ODD_ROW(name) PEG__FULL_ROW(name, "/" name, ODD, 0, NULL)

extern const struct peg__enum peg__tiers; /* peg_trust_tier */
/* Of a payload, by peg_block_kind. */
extern const struct peg__member *const peg__payload_members[];

/* Does the object have a name that is none of the enum? */
bool peg__enum_is_foreign(const peg_json *object, const struct peg__member *member);
bool peg__member_is_known(const struct peg__member *table, peg_str name);
/* The member for a field of the definition ("/tool"), or NULL. */
const char *peg__member_of_field(const struct peg__member *table, const char *field);
/* All plain members; what is missing stays as it is in the definition. */
void peg__members_read(struct peg__in *in, const struct peg__member *table, void *def);
void peg__members_write(const struct peg__member *table, const void *def,
                        struct peg__fields *fields);
/* The same into an object that is open, in the order of the table. What a function fails with. */
peg_status peg__members_add(const struct peg__member *table, const void *def, peg_json_builder *b,
                            peg_error *reterr) PEG_MUST_USE;

/*
 * Members of an object in a file. The first error sticks in `status`: later reads return nothing.
 * Members that are null count as missing.
 *
 * Value; borrows all.
 */

struct peg__in {
    const peg_json *object;
    const char *at; /* where it stands: a pointer such as "/payload/media/3" */
    bool is_strict;
    peg_status status;
    peg_error *reterr;
};

/* Bytes of a pointer in `at`. */
enum { PEG__IN_AT = 96 };

/* PEG_EPARSE (E_TURN_FORMAT) at a member, or at the object itself if name is NULL. */
peg_status peg__in_fail(struct peg__in *in, const char *name, const char *fmt, ...)
    PEG_PRINTF(3, 4);

/* NULL if it is missing. */
const peg_json *peg__in_any(const struct peg__in *in, const char *name);
/* Fails if it is of another kind. */
const peg_json *peg__in_kind(struct peg__in *in, const char *name, peg_json_kind kind);
/* ptr is NULL if it is missing; NUL-terminated. */
peg_str peg__in_string(struct peg__in *in, const char *name);
/* The same without NULs in it; NULL if it is missing. */
const char *peg__in_cstring(struct peg__in *in, const char *name);
/* Nothing if it is missing. */
peg_status peg__in_bag(struct peg__in *in, const char *name, peg_bag **ret_bag);
/* 0 if it is missing. */
int64_t peg__in_integer(struct peg__in *in, const char *name, int64_t most);
/* Fails if it is strict and has a member that is not in the table. */
void peg__in_only(struct peg__in *in, const struct peg__member *table);
/* Are there members that are not in the table? */
bool peg__in_has_others(const peg_json *object, const struct peg__member *table);
/* An object of these members; *ret_doc stays as it is if there are none. PEG_ENOMEM. */
peg_status peg__in_keep_others(struct peg__in *in, const struct peg__member *table,
                               peg_json_doc **ret_doc) PEG_MUST_USE;
/* Adds a member, if there is a value and a builder. False if there is no value. */
bool peg__member_copy(const char *name, const peg_json *value, peg_json_builder *b);
/* Adds these members to an object that the builder has open. */
void peg__in_copy_others(const peg_json *object, const struct peg__member *table,
                         peg_json_builder *b);

/* Puts a pointer before `where` of an error. */
void peg__in_below(peg_error *reterr, const char *at);
/* The error of a refused definition as one of the file: `where` becomes `at`. PEG_ELIMIT and
 * PEG_ENOMEM stay. */
peg_status peg__in_refused(peg_status status, const char *at, peg_error *reterr);

/*
 * Arguments in a file: `args` is the object where the text is one, else the text itself as a
 * string, however broken; `args_base64` is a text that is no UTF-8.
 */

/* The memory that fields borrow. Owned; starts as {0}. */
struct peg__args_out {
    peg_json_doc *doc;
    char *base64;
};
/* Adds `args` or `args_base64`, nothing if the text is empty. PEG_ENOMEM. */
peg_status peg__args_fields(peg_str text, struct peg__args_out *out, struct peg__fields *fields,
                            peg_error *reterr) PEG_MUST_USE;
void peg__args_out_free(struct peg__args_out *out);

/* Are they written as the same? Objects are compared by value, other texts by bytes. PEG_ENOMEM. */
peg_status peg__args_same(peg_str a, peg_str b, bool *ret_same, peg_error *reterr) PEG_MUST_USE;
/* Can a call that succeeded have them? PEG_ENOMEM. */
peg_status peg__args_usable(peg_str text, bool *ret_usable, peg_error *reterr) PEG_MUST_USE;

/* The text; ptr NULL if there is none. *ret_owned is its memory, freed with peg__free(), or NULL.
 */
peg_status peg__args_read(struct peg__in *payload, peg_str *ret_text,
                          char **ret_owned) PEG_MUST_USE;

/*
 * The bytes of artifacts and media in a file: in its text while they are few, else in a spool store
 * under "sha256-" and their digest, and in the text a reference to there.
 */

/* How bytes are written. Owned, but the text may be borrowed from the reader. */
struct peg__bytes {
    enum {
        PEG__BYTES_TEXT,
        PEG__BYTES_BASE64,
        PEG__BYTES_REF,
    } form;
    peg_str text; /* as it is, or in base 64 */
    struct peg__bytes_ref ref;
    char *owned; /* the text's; NULL: it is the reader's */
};

/* Decides, and puts what does not fit into the text into the store. PEG_ELIMIT (E_TURN_BYTES), what
 * reader and store fail with, PEG_ENOMEM. */
peg_status peg__bytes_place(peg_reader *reader, const peg_turn_write_options *options,
                            struct peg__bytes *ret_bytes, peg_error *reterr) PEG_MUST_USE;
/* Adds the member text, base64 or ref; the bytes must outlive the fields. */
void peg__bytes_fields(const struct peg__bytes *bytes, struct peg__fields *fields);
void peg__bytes_free(struct peg__bytes *bytes);

/* A text in base 64, freed with peg__free(); ret_len may be NULL. PEG_ENOMEM. */
peg_status peg__bytes_base64(peg_str bytes, char **ret_text, size_t *ret_len,
                             peg_error *reterr) PEG_MUST_USE;

/* Media and artifacts in a file: docs/turn-format.md has their members. */

/* ---- writing ---------------------------------------------------------------------- */

/* Value; borrows all. */
struct peg__media_list {
    const peg_block *block;
    const peg_turn_write_options *options;
    const peg_json *rest; /* an array: for each media the members of its file to write; or NULL */
};
/* Adds an array: a peg__field_fn over a peg__media_list. */
peg_status peg__media_file_write(const void *self, peg_json_builder *b, peg_error *reterr);

/* Value; borrows all. */
struct peg__artifact_out {
    const char *kind;
    const struct peg__bytes *bytes; /* NULL: they stand elsewhere */
    const peg_json *rest;           /* members of its file to write; or NULL */
};
/* Adds an object: a peg__field_fn over a peg__artifact_out. */
peg_status peg__artifact_file_write(const void *self, peg_json_builder *b, peg_error *reterr);

/* ---- reading ---------------------------------------------------------------------- */

/* Owned. */
struct peg__media_in {
    peg_media **items;
    size_t n;
};
void peg__media_in_free(struct peg__media_in *media);

/* The member `media` of a payload, and `images` behind it where the kind of block has these; none
 * is fine. The block's id names media that have no id. */
peg_status peg__media_file_read(struct peg__in *payload, peg_str block_id, bool has_images,
                                const peg_turn_read_options *options,
                                struct peg__media_in *ret_media) PEG_MUST_USE;
/* The rest: members that are unknown or have no field here. The functions add it to the object that
 * the builder has open, unless b is NULL, and return whether there is any. Of media it is the
 * member `media`, the array for peg__media_list. */
bool peg__media_rest(const peg_json *payload, bool has_images, peg_json_builder *b);

/* An artifact, from the object that describes it; `text` are its bytes if it does not have them
 * itself (ptr NULL: none). */
peg_status peg__artifact_file_read(struct peg__in *in, peg_str text,
                                   const peg_turn_read_options *options,
                                   peg_artifact **ret_artifact) PEG_MUST_USE;
/* Of an artifact, as the member `artifact`. */
bool peg__artifact_rest(const peg_json *artifact, const peg_turn_read_options *options,
                        peg_json_builder *b);

/* The bytes of an object's text, base64 or ref; *ret_reader is NULL if it has none of them. */
peg_status peg__bytes_read(struct peg__in *in, const peg_turn_read_options *options,
                           peg_reader **ret_reader) PEG_MUST_USE;
/* Bytes in base 64, freed with peg__free(); fails at the member. */
peg_status peg__in_decode(struct peg__in *in, const char *name, peg_str base64, char **ret_bytes,
                          size_t *ret_len) PEG_MUST_USE;
/* The same as a reader. */
peg_status peg__bytes_decode(struct peg__in *in, const char *name, peg_str base64,
                             peg_reader **ret_reader) PEG_MUST_USE;

/* The payload of a result: a record without what its call has already. */

/* The payload of a block while it is written. Owned; see peg__payload_free(). */
struct peg__payload {
    const struct peg__block_write *how;
    const peg_block *block;
    const peg_json *rest; /* members of its file that go before ours, or NULL */
    struct peg__fields fields;
    struct peg__args_out args;
    struct peg__bytes bytes; /* of the artifact */
    struct peg__artifact_out artifact;
    struct peg__media_list media;
    char *base64; /* of a text that is no UTF-8 */
};

/* Adds the fields `media` and `artifact`; the text of an artifact may be left to the caller. */
void peg__payload_media(struct peg__payload *payload);
peg_status peg__payload_artifact(struct peg__payload *payload, bool without_text,
                                 peg_error *reterr) PEG_MUST_USE;

peg_status peg__result_fields(struct peg__payload *payload, peg_error *reterr) PEG_MUST_USE;

/* Makes the record of a result block with this id. */
peg_status peg__result_read(const struct peg__block_read *how, struct peg__in *payload, peg_str id,
                            peg_record **ret_record) PEG_MUST_USE;
/* The rest of its payload. */
bool peg__result_rest(const peg_json *payload, const peg_turn_read_options *options,
                      peg_json_builder *b);

/* The code of a failure without one. */
#define PEG__DEFAULT_CODE "E_TOOL_DOWNSTREAM_ERROR"

#endif
