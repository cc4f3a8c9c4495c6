/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading descriptors: gather_files -> declare (walks one file, names everything) -> list_imports
 *
 * Descriptors are messages of descriptor.proto: the table `parts` says which of their fields are
 * declarations, and one function walks them all.
 */

#include "grpc/server/internal.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/text/str.h"

struct known_file {
    struct grpc_symbol_file public;
    size_t seen_by; /* while imports are listed: number of the last file that has this one */
};

struct extension {
    peg_str type; /* borrowed from the descriptor */
    int32_t number;
    const struct known_file *file;
};

struct grpc_symbols {
    struct peg__arena arena; /* known files and their lists */
    struct peg__map files;   /* name -> known_file, in the order in which they were found */
    struct peg__map names;   /* full name -> known_file */
    struct extension *extensions;
    size_t n_extensions;
    size_t extensions_capacity;
};

/* ---- the wire ------------------------------------------------------------------------------- */

struct field {
    uint64_t number;
    uint64_t value; /* if it is a varint */
    peg_str bytes;  /* if it is not */
};

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

static bool take_varint(peg_str *data, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && data->len > 0; shift += 7) {
        const uint8_t byte = (uint8_t)*data->ptr;

        *data = peg__str_from(*data, 1);
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(peg_str *data, uint64_t len, peg_str *ret_bytes)
{
    if (len > data->len)
        return false;
    *ret_bytes = peg__strn(data->ptr, (size_t)len);
    *data = peg__str_from(*data, (size_t)len);
    return true;
}

/* Takes the next field from the front. False: there is none that could be read. */
static bool read_descriptor_field(peg_str *data, struct field *ret_field)
{
    uint64_t key;
    uint64_t len;

    *ret_field = (struct field){0};
    if (!take_varint(data, &key))
        return false;
    ret_field->number = key >> 3;
    switch (key & 7) {
    case WIRE_VARINT:
        return take_varint(data, &ret_field->value);
    case WIRE_64:
        return take_bytes(data, 8, &ret_field->bytes);
    case WIRE_BYTES:
        return take_varint(data, &len) && take_bytes(data, len, &ret_field->bytes);
    case WIRE_32:
        return take_bytes(data, 4, &ret_field->bytes);
    default:
        return false;
    }
}

/* The last field of a number, all zero if there is none. */
static struct field find_field(peg_str data, uint64_t number)
{
    struct field found = {0};
    struct field field;

    while (read_descriptor_field(&data, &field))
        if (field.number == number)
            found = field;
    return found;
}

/* ---- declarations --------------------------------------------------------------------------- */

enum kind { NOTHING, FILE_KIND, MESSAGE, ENUM, SERVICE, EXTENSION, LEAF, N_KINDS };

/* Numbers in descriptor.proto; the name is number 1 in all of them but the file, whose package is
 * number 2. */
enum {
    NAME = 1,
    FILE_PACKAGE = 2,
    FIELD_EXTENDEE = 2,
    FIELD_NUMBER = 3,
    MAX_PART = 9,
};

static const uint8_t parts[N_KINDS][MAX_PART] = {
    [FILE_KIND] = {[4] = MESSAGE, [5] = ENUM, [6] = SERVICE, [7] = EXTENSION},
    [MESSAGE] = {[2] = LEAF, [3] = MESSAGE, [4] = ENUM, [6] = EXTENSION, [8] = LEAF},
    [ENUM] = {[2] = LEAF},
    [SERVICE] = {[2] = LEAF},
};

struct walk {
    struct grpc_symbols *symbols;
    struct known_file *file;
    struct peg__buf scope; /* the full name of what is being declared */
    peg_error *reterr;
};

static peg_status fail_descriptor(struct walk *walk)
{
    return peg__fail(walk->reterr, PEG_EPARSE, "E_GRPC_SERVICE",
                     "the descriptor of '%s' cannot be read: build it again with tools/grpc-gen",
                     walk->file->public.file->name);
}

static peg_status fail_symbol_limit(peg_error *reterr, const char *what, int max)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_GRPC_SERVICE",
                     "the services declare more than %d %s: serve fewer", max, what);
}

static peg_status add_name(struct walk *walk)
{
    const peg_status status =
        peg__map_add(&walk->symbols->names, peg__buf_view(&walk->scope), walk->file);

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(walk->reterr);
    if (status == PEG_ELIMIT)
        return fail_symbol_limit(walk->reterr, "names", PEG_LIMIT_GRPC_SYMBOLS);
    return PEG_OK; /* a name that two files declare is found in the first */
}

static peg_status add_extension(struct walk *walk, peg_str field)
{
    struct grpc_symbols *symbols = walk->symbols;
    peg_str type = find_field(field, FIELD_EXTENDEE).bytes;

    if (type.len > 0 && type.ptr[0] == '.')
        type = peg__str_from(type, 1);
    if (!PEG__RESERVE(symbols->extensions, symbols->n_extensions + 1, symbols->extensions_capacity))
        return peg__fail_nomem(walk->reterr);
    symbols->extensions[symbols->n_extensions++] = (struct extension){
        .type = type,
        .number = (int32_t)find_field(field, FIELD_NUMBER).value,
        .file = walk->file,
    };
    return PEG_OK;
}

/* Puts the name of a declaration behind its scope. */
static peg_status enter_name(struct walk *walk, peg_str name)
{
    if (name.len == 0)
        return fail_descriptor(walk);
    if (walk->scope.len > 0)
        peg__buf_putc(&walk->scope, '.');
    peg__buf_str(&walk->scope, name);
    if (walk->scope.status == PEG_ENOMEM)
        return peg__fail_nomem(walk->reterr);
    return walk->scope.status ? fail_descriptor(walk) : PEG_OK;
}

static peg_status declare(struct walk *walk, enum kind kind, peg_str data, unsigned depth);

/* NOLINTNEXTLINE(misc-no-recursion): declare() has a bound */
static peg_status declare_parts(struct walk *walk, enum kind kind, peg_str data, unsigned depth)
{
    while (data.len > 0) {
        struct field field;
        enum kind part;
        peg_status status;

        if (!read_descriptor_field(&data, &field))
            return fail_descriptor(walk);
        part = field.number < MAX_PART ? (enum kind)parts[kind][field.number] : NOTHING;
        if (part == NOTHING)
            continue;
        status = declare(walk, part, field.bytes, depth + 1);
        if (status)
            return status;
    }
    return PEG_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): not deeper than PEG_LIMIT_GRPC_NESTING */
static peg_status declare(struct walk *walk, enum kind kind, peg_str data, unsigned depth)
{
    const size_t outer = walk->scope.len;
    peg_status status;

    if (depth > PEG_LIMIT_GRPC_NESTING)
        return fail_symbol_limit(walk->reterr, "levels of nesting", PEG_LIMIT_GRPC_NESTING);
    status = enter_name(walk, find_field(data, NAME).bytes);
    if (!status)
        status = add_name(walk);
    if (!status && kind == EXTENSION)
        status = add_extension(walk, data);
    /* The values of an enum are named as if they stood beside it. */
    if (!status && kind == ENUM)
        walk->scope.len = outer;
    if (!status)
        status = declare_parts(walk, kind, data, depth);
    walk->scope.len = outer;
    return status;
}

static peg_status declare_file(struct grpc_symbols *symbols, struct known_file *file,
                               peg_error *reterr)
{
    struct walk walk = {
        .symbols = symbols,
        .file = file,
        .scope = PEG__BUF(PEG_LIMIT_GRPC_SYMBOL_BYTES),
        .reterr = reterr,
    };
    const peg_str data = peg__strn((const char *)file->public.file->bytes, file->public.file->len);
    const peg_str package = find_field(data, FILE_PACKAGE).bytes;
    peg_status status = package.len > 0 ? enter_name(&walk, package) : PEG_OK;

    if (!status)
        status = declare_parts(&walk, FILE_KIND, data, 0);
    peg__buf_free(&walk.scope);
    return status;
}

/* ---- files ---------------------------------------------------------------------------------- */

static bool is_same_file(const struct grpc_file *a, const struct grpc_file *b)
{
    return a == b || (a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0);
}

static peg_status add_file(struct grpc_symbols *symbols, const struct grpc_file *file,
                           peg_error *reterr)
{
    const struct known_file *known = peg__map_get(&symbols->files, peg__str(file->name));
    struct known_file *added;
    peg_status status;

    if (known && !is_same_file(known->public.file, file))
        return peg__fail(reterr, PEG_EEXISTS, "E_GRPC_SERVICE",
                         "two different files are named '%s': rename one of them", file->name);
    if (known)
        return PEG_OK;
    added = peg__arena_alloc_zero(&symbols->arena, sizeof(*added));
    if (!added)
        return peg__fail_nomem(reterr);
    added->public.file = file;
    status = peg__map_add(&symbols->files, peg__str(file->name), added);
    if (status == PEG_ELIMIT)
        return fail_symbol_limit(reterr, "files", PEG_LIMIT_GRPC_FILES);
    return status ? peg__fail_nomem(reterr) : PEG_OK;
}

/* A file's imports are added behind it, so that walking the map once meets everything. The walk
 * is by number: adding moves the entries. */
static peg_status gather_files(struct grpc_symbols *symbols, const struct grpc_file *const *files,
                               size_t n_files, peg_error *reterr)
{
    for (size_t i = 0; i < n_files; i++) {
        const peg_status status = add_file(symbols, files[i], reterr);

        if (status)
            return status;
    }
    for (size_t i = 0; i < symbols->files.n_entries; i++) {
        const struct known_file *known = symbols->files.entries[i].value;
        const struct grpc_file *file = known->public.file;

        for (size_t j = 0; j < file->n_imports; j++) {
            const peg_status status = add_file(symbols, file->imports[j], reterr);

            if (status)
                return status;
        }
    }
    return PEG_OK;
}

static ProtobufCBinaryData file_bytes(const struct grpc_file *file)
{
    return (ProtobufCBinaryData){.len = file->len, .data = peg__unconst(file->bytes)};
}

/* Breadth first; `queue` has room for all files. Returns how many there are. */
static size_t follow_imports(struct grpc_symbols *symbols, struct known_file *first, size_t number,
                             struct known_file **queue)
{
    size_t n = 0;

    queue[n++] = first;
    first->seen_by = number;
    for (size_t i = 0; i < n; i++) {
        const struct grpc_file *file = queue[i]->public.file;

        for (size_t j = 0; j < file->n_imports; j++) {
            struct known_file *import =
                peg__map_get(&symbols->files, peg__str(file->imports[j]->name));

            if (import->seen_by == number)
                continue;
            import->seen_by = number;
            queue[n++] = import;
        }
    }
    return n;
}

static peg_status list_imports(struct grpc_symbols *symbols, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep)
    struct known_file **queue = peg__alloc_zero(symbols->files.n + 1, sizeof(struct known_file *));
    size_t number = 0;

    if (!queue)
        return peg__fail_nomem(reterr);
    PEG__MAP_EACH(&symbols->files, entry)
    {
        struct known_file *file = entry->value;
        const size_t n = follow_imports(symbols, file, ++number, queue);
        ProtobufCBinaryData *list = peg__arena_alloc(&symbols->arena, n * sizeof(*list));

        if (!list)
            return peg__fail_nomem(reterr);
        for (size_t i = 0; i < n; i++)
            list[i] = file_bytes(queue[i]->public.file);
        file->public.with_imports = list;
        file->public.n_with_imports = n;
    }
    return PEG_OK;
}

static peg_status add_files(struct grpc_symbols *symbols, const struct grpc_file *const *files,
                            size_t n_files, peg_error *reterr)
{
    peg_status status = gather_files(symbols, files, n_files, reterr);

    if (status)
        return status;
    PEG__MAP_EACH(&symbols->files, entry)
    {
        status = declare_file(symbols, entry->value, reterr);
        if (status)
            return status;
    }
    return list_imports(symbols, reterr);
}

/* ---- the symbols ---------------------------------------------------------------------------- */

struct grpc_symbols *grpc_symbols_free(struct grpc_symbols *symbols)
{
    if (!symbols)
        return NULL;
    peg__map_free(&symbols->files);
    peg__map_free(&symbols->names);
    peg__free(symbols->extensions);
    peg__arena_free(&symbols->arena);
    peg__free(symbols);
    return NULL;
}

peg_status grpc_symbols_new(const struct grpc_file *const *files, size_t n_files,
                            struct grpc_symbols **ret_symbols, peg_error *reterr)
{
    struct grpc_symbols *symbols = peg__alloc_zero(1, sizeof(*symbols));
    peg_status status;

    if (!symbols)
        return peg__fail_nomem(reterr);
    symbols->files.max = PEG_LIMIT_GRPC_FILES;
    symbols->names.max = PEG_LIMIT_GRPC_SYMBOLS;
    status = add_files(symbols, files, n_files, reterr);
    if (status) {
        grpc_symbols_free(symbols);
        return status;
    }
    *ret_symbols = symbols;
    return PEG_OK;
}

const struct grpc_symbol_file *grpc_symbols_file(const struct grpc_symbols *symbols, peg_str name)
{
    const struct known_file *file = peg__map_get(&symbols->files, name);

    return file ? &file->public : NULL;
}

const struct grpc_symbol_file *grpc_symbols_find(const struct grpc_symbols *symbols, peg_str name)
{
    const struct known_file *file = peg__map_get(&symbols->names, name);

    return file ? &file->public : NULL;
}

const struct grpc_symbol_file *grpc_symbols_extension(const struct grpc_symbols *symbols,
                                                      peg_str type, int32_t number)
{
    for (size_t i = 0; i < symbols->n_extensions; i++) {
        const struct extension *extension = &symbols->extensions[i];

        if (extension->number == number && peg__str_eq(extension->type, type))
            return &extension->file->public;
    }
    return NULL;
}

size_t grpc_symbols_extension_numbers(const struct grpc_symbols *symbols, peg_str type,
                                      int32_t *ret_numbers, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < symbols->n_extensions; i++) {
        if (!peg__str_eq(symbols->extensions[i].type, type))
            continue;
        if (n < max)
            ret_numbers[n] = symbols->extensions[i].number;
        n++;
    }
    return n;
}
