/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_HTTP2_HPACK_H
#define PEG_GRPC_HTTP2_HPACK_H

/*
 * HPACK (RFC 7541): blocks of header fields as the bytes of HTTP/2, both ways. Each side of a
 * connection remembers the last fields that it sent or got, and names them by number. Does no
 * I/O.
 */

#include "grpc/http2/field.h"

struct grpc_field;

/* ---- the fields that one side remembers, the newest first --------------------------------- */

enum {
    GRPC_HPACK_STATIC = 61,        /* fields that everybody knows: numbers 1 to 61 */
    GRPC_HPACK_TABLE_BYTES = 4096, /* what HTTP/2 begins with; we ask for no more and use no more */
    GRPC_HPACK_FIELD_BYTES = 32,   /* what a field counts beside its letters */
};

struct grpc_hpack_entry {
    uint16_t at; /* of its letters; see `base` */
    uint16_t name_len;
    uint16_t value_len;
    uint8_t kind;       /* enum grpc_field_kind; a decoder's */
    uint32_t name_hash; /* an encoder's */
    uint32_t hash;
};

/* All zero is empty; it takes memory with its first field. Owned. */
struct grpc_hpack_table {
    char *bytes;     /* names and values, each field in one piece, the oldest first */
    size_t capacity; /* at most twice GRPC_HPACK_TABLE_BYTES */
    size_t head;     /* where the next goes */
    uint16_t base;   /* the `at` of bytes[0], modulo 2^16 */
    struct grpc_hpack_entry *entries; /* a ring */
    uint32_t n_slots;                 /* a power of two */
    uint32_t first;                   /* the oldest */
    uint32_t n;
    uint32_t size; /* as HPACK counts, at most max_size */
    uint32_t max_size;
    uint32_t n_changes; /* the numbers of fields are what they were as long as this is */
};

void grpc_hpack_table_free(struct grpc_hpack_table *table);
/* 0 is the newest. Requires i < n. */
static inline const struct grpc_hpack_entry *
grpc_hpack_table_at(const struct grpc_hpack_table *table, uint32_t i)
{
    return &table->entries[(table->first + table->n - 1 - i) & (table->n_slots - 1)];
}
static inline peg_str grpc_hpack_name(const struct grpc_hpack_table *table,
                                      const struct grpc_hpack_entry *entry)
{
    return (peg_str){table->bytes + (uint16_t)(entry->at - table->base), entry->name_len};
}
static inline peg_str grpc_hpack_value(const struct grpc_hpack_table *table,
                                       const struct grpc_hpack_entry *entry)
{
    return (peg_str){table->bytes + (uint16_t)(entry->at - table->base) + entry->name_len,
                     entry->value_len};
}
/* Forgets the oldest until there is room. One that is larger than the table empties it, and is not
 * kept. The name may be one of the table's own. What was borrowed before is gone if it failed to
 * fit, but not by being forgotten. PEG_ENOMEM changes nothing. `entry` has kind and hashes. */
peg_status grpc_hpack_table_add(struct grpc_hpack_table *table, peg_str name, peg_str value,
                                struct grpc_hpack_entry entry);
/* At most GRPC_HPACK_TABLE_BYTES. */
void grpc_hpack_table_resize(struct grpc_hpack_table *table, uint32_t max_size);

/* A field that everybody knows; 1 <= number <= GRPC_HPACK_STATIC. The value may be "". */
struct grpc_hpack_static {
    peg_str name;
    peg_str value;
    uint8_t kind;
};
const struct grpc_hpack_static *grpc_hpack_static_at(uint32_t number);
/* The number of a field, or 0; *ret_name that of one with the same name, or 0. */
uint32_t grpc_hpack_static_find(peg_str name, peg_str value, uint32_t *ret_name);

/* ---- Huffman ------------------------------------------------------------------------------ */

/* The most letters that so many bytes stand for. */
static inline size_t grpc_huffman_most(size_t n_bytes)
{
    return n_bytes * 8 / 5;
}
/* Writes at most grpc_huffman_most() letters. False: it is no Huffman code, or badly ended. */
bool grpc_huffman_decode(const uint8_t *bytes, size_t len, char *ret_text, size_t *ret_len);

/* ---- reading ------------------------------------------------------------------------------ */

/* Readied by grpc_hpack_decoder_init(). Owned. */
struct grpc_hpack_decoder {
    struct grpc_hpack_table table;
    char *text; /* what Huffman stood for, of one field */
    size_t text_capacity;
    size_t text_len;
    bool may_resize; /* only the first thing in a block may */
};

struct grpc_hpack_field {
    peg_str name; /* borrowed until the next call */
    peg_str value;
    enum grpc_field_kind kind;
};

enum grpc_hpack_step {
    GRPC_HPACK_FIELD, /* *ret_field is the next */
    GRPC_HPACK_MORE,  /* nothing is left, or the beginning of a field */
    GRPC_HPACK_BAD,   /* no HPACK: the connection cannot go on */
    GRPC_HPACK_NOMEM, /* nor here */
};

void grpc_hpack_decoder_init(struct grpc_hpack_decoder *decoder);
void grpc_hpack_decoder_free(struct grpc_hpack_decoder *decoder);
/* Before the first field of each block, and after the last. */
void grpc_hpack_decode_begin(struct grpc_hpack_decoder *decoder);
void grpc_hpack_decode_end(struct grpc_hpack_decoder *decoder);
/* Takes one field from the front; **at is left at the first byte that was not taken. */
enum grpc_hpack_step grpc_hpack_decode(struct grpc_hpack_decoder *decoder, const uint8_t **at,
                                       const uint8_t *end, struct grpc_hpack_field *ret_field);

/* ---- writing ------------------------------------------------------------------------------ */

enum { GRPC_HPACK_SEEN = 16, GRPC_HPACK_CACHED = 4, GRPC_HPACK_CACHED_BYTES = 10 };

/* Readied by grpc_hpack_encoder_init(). Owned. Without memory it remembers less. */
struct grpc_hpack_encoder {
    struct grpc_hpack_table table;
    uint32_t wanted;                /* size of the table, to be told with the next block */
    uint32_t smallest;              /* that the peer has asked for meanwhile */
    uint32_t seen[GRPC_HPACK_SEEN]; /* hashes of fields that were sent once and not remembered */
    /* Blocks that are the same for ever (grpc_block.is_static), as they were sent last. */
    struct grpc_hpack_cached {
        const struct grpc_field *fields;
        uint32_t n_changes; /* of the table, then */
        uint8_t len;
        uint8_t bytes[GRPC_HPACK_CACHED_BYTES];
    } cached[GRPC_HPACK_CACHED];
};

void grpc_hpack_encoder_init(struct grpc_hpack_encoder *encoder);
void grpc_hpack_encoder_free(struct grpc_hpack_encoder *encoder);
/* The peer remembers no more than this. */
void grpc_hpack_encoder_limit(struct grpc_hpack_encoder *encoder, uint32_t max_size);
/* The most bytes that a block can take. */
size_t grpc_hpack_bound(const struct grpc_field *fields, size_t n);
/* Writes a block and returns its length; `ret_bytes` has room for grpc_hpack_bound(). What it
 * writes must be sent. */
size_t grpc_hpack_encode(struct grpc_hpack_encoder *encoder, const struct grpc_field *fields,
                         size_t n, bool is_static, uint8_t *ret_bytes);

#endif
