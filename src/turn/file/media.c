/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Media and artifacts in files: ours (`media`) and the reference's (`images`). A member that a file
 * leaves out gets the least trusted value. Unknown names of tiers, kinds and hazards count as left
 * out, and are kept.
 */

#include <limits.h>
#include <stdio.h>
#include <strings.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/result/result.h"
#include "turn/file/internal.h"

static const char *name_kind(unsigned value)
{
    return peg_media_kind_name((peg_media_kind)value);
}

static const char *name_hazard(unsigned value)
{
    return peg_media_hazard_name((peg_media_hazard)value);
}

static const struct peg__enum kinds = {name_kind, PEG_MEDIA_DOCUMENT};
static const struct peg__enum hazards = {name_hazard, PEG_HAZARD_OPAQUE};

static const struct peg__member media_members[] = {
    PEG__ROW(peg_media_def, id, "id", OPTION),
    PEG__ENUM_ROW(peg_media_def, kind, "kind", &kinds),
    PEG__ROW(peg_media_def, mime_type, "media_type", OPTION),
    PEG__ROW(peg_media_def, filename, "filename", OPTION),
    PEG__ROW(peg_media_def, uri, "uri", OPTION),
    PEG__ROW(peg_media_def, file_id, "file_id", OPTION),
    PEG__ROW(peg_media_def, detail, "detail", OPTION),
    PEG__ENUM_ROW(peg_media_def, tier, "trust_tier", &peg__tiers),
    PEG__ENUM_ROW(peg_media_def, hazard, "modality_hazard", &hazards),
    PEG__ROW(peg_media_def, source, "source", OPTION),
    PEG__ODD_ROW("notes"),
    PEG__ODD_ROW("text"),
    PEG__ODD_ROW("base64"),
    PEG__ODD_ROW("ref"),
    {0},
};

/* The reference's. */
static const struct peg__member image_members[] = {
    PEG__ROW(peg_media_def, mime_type, "media_type", OPTION),
    PEG__ROW(peg_media_def, uri, "file_uri", OPTION),
    PEG__ROW(peg_media_def, file_id, "file_id", OPTION),
    PEG__ROW(peg_media_def, detail, "detail", OPTION),
    PEG__ODD_ROW("url"),
    PEG__ODD_ROW("content"),
    {0},
};

static const struct peg__member note_members[] = {
    PEG__ROW(peg_media_note, name, "name", CSTRING),
    PEG__ROW(peg_media_note, text, "text", CSTRING),
    PEG__ENUM_ROW(peg_media_note, tier, "trust_tier", &peg__tiers),
    PEG__ROW(peg_media_note, is_derived, "derived", BOOL),
    {0},
};

/* ---- what is left out ------------------------------------------------------------------ */

static peg_media_kind kind_of_type(const char *mime_type)
{
    const peg_str type = peg_cstr(mime_type);

    if (peg__str_starts(type, peg__str("image/")))
        return PEG_MEDIA_IMAGE;
    if (peg__str_starts(type, peg__str("audio/")))
        return PEG_MEDIA_AUDIO;
    return peg__str_starts(type, peg__str("video/")) ? PEG_MEDIA_VIDEO : PEG_MEDIA_DOCUMENT;
}

static const char *type_of_kind(peg_media_kind kind)
{
    switch (kind) {
    case PEG_MEDIA_IMAGE:
        return "image/*";
    case PEG_MEDIA_AUDIO:
        return "audio/*";
    case PEG_MEDIA_VIDEO:
        return "video/*";
    case PEG_MEDIA_UNSET:
    case PEG_MEDIA_DOCUMENT:
        break;
    }
    return "application/octet-stream";
}

static void fill_missing(peg_media_def *def)
{
    if (!def->kind)
        def->kind = kind_of_type(def->mime_type);
    if (!def->mime_type)
        def->mime_type = type_of_kind(def->kind);
    if (!def->filename)
        def->filename = peg_media_kind_name(def->kind);
    if (!def->hazard)
        def->hazard = def->kind == PEG_MEDIA_DOCUMENT ? PEG_HAZARD_EXTRACTABLE : PEG_HAZARD_OPAQUE;
}

/* ---- our media ------------------------------------------------------------------------- */

static peg_status read_note(const struct peg__in *media, size_t i, const peg_json *value,
                            peg_media_note *ret_note)
{
    char at[PEG__IN_AT];
    struct peg__in in = {value, at, media->is_strict, PEG_OK, media->reterr};

    snprintf(at, sizeof(at), "%s/notes/%zu", media->at, i);
    if (value->kind != PEG_JSON_OBJECT)
        return peg__in_fail(&in, NULL, "must be an object with name and text");
    peg__in_only(&in, note_members);
    peg__members_read(&in, note_members, ret_note);
    if (!ret_note->tier)
        ret_note->tier = PEG_TIER_THIRD_PARTY_PUBLIC;
    if (!ret_note->text)
        ret_note->text = "";
    return in.status;
}

/* *ret_notes is freed with peg__free(). */
static peg_status read_notes(struct peg__in *in, peg_media_note **ret_notes, size_t *ret_n)
{
    const peg_json *array = peg__in_kind(in, "notes", PEG_JSON_ARRAY);
    const size_t n = array ? peg_json_len(array) : 0;
    peg_media_note *notes;
    size_t i = 0;

    if (in->status || !n)
        return in->status;
    if (n > PEG_LIMIT_MEDIA_NOTES)
        return peg__in_fail(in, "notes", "has more than %d items", PEG_LIMIT_MEDIA_NOTES);
    notes = peg__alloc_zero(n, sizeof(*notes));
    if (!notes)
        return in->status = peg__fail_nomem(in->reterr);
    PEG_JSON_EACH_ITEM (array, item) {
        in->status = read_note(in, i, item, &notes[i]);
        if (in->status)
            break;
        i++;
    }
    *ret_notes = notes;
    *ret_n = n;
    return in->status;
}

static peg_status make_media(struct peg__in *in, peg_media_def *def, const char *id,
                             peg_media **ret_media)
{
    peg_status status;

    if (in->status)
        return in->status;
    if (!def->id)
        def->id = id;
    fill_missing(def);
    if (!def->reader && !def->uri && !def->file_id)
        return peg__in_fail(in, NULL, "has no bytes: give text, base64, ref, uri or file_id");
    status = peg_media_new(def, ret_media, in->reterr);
    return status ? in->status = peg__in_refused(status, in->at, in->reterr) : PEG_OK;
}

/* Claims of an untrusted file about itself count as left out. */
static void drop_claims(peg_media_def *def, peg_media_note *notes)
{
    def->tier = PEG_TIER_THIRD_PARTY_PUBLIC;
    def->hazard = PEG_HAZARD_UNSET;
    for (size_t i = 0; notes && i < def->n_notes; i++)
        notes[i].tier = PEG_TIER_THIRD_PARTY_PUBLIC;
}

static peg_status read_media(struct peg__in *in, const char *id,
                             const peg_turn_read_options *options, peg_media **ret_media)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    PEG_CLEANUP(peg__freep) peg_media_note *notes = NULL;
    peg_media_def def = {PEG_MEDIA_DEF_INIT};

    peg__members_read(in, media_members, &def);
    peg__in_only(in, media_members);
    if (!def.tier)
        def.tier = PEG_TIER_THIRD_PARTY_PUBLIC;
    if (in->status || read_notes(in, &notes, &def.n_notes) || peg__bytes_read(in, options, &reader))
        return in->status;
    if (options->untrusted)
        drop_claims(&def, notes);
    def.notes = notes;
    def.reader = reader;
    return make_media(in, &def, id, ret_media);
}

/* ---- the reference's images -------------------------------------------------------------- */

/* The type by the first bytes, or NULL. */
static const char *type_of_bytes(const peg_reader *reader)
{
    static const struct {
        peg_str start;
        const char *type;
    } types[] = {{PEG_LIT("\x89PNG"), "image/png"},
                 {PEG_LIT("\xFF\xD8\xFF"), "image/jpeg"},
                 {PEG_LIT("GIF8"), "image/gif"},
                 {PEG_LIT("RIFF"), "image/webp"}};
    peg_str bytes;

    if (!reader || !peg__reader_view(reader, &bytes))
        return NULL;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (peg__str_starts(bytes, types[i].start))
            return types[i].type;
    return NULL;
}

/* Bytes that stand in the URL itself, of RFC 2397. Owned. */
struct data_url {
    peg_reader *reader;
    char type[128]; /* without parameters; "" if there is none */
};

static void free_data_url(struct data_url *data)
{
    peg_reader_unref(data->reader);
}

/* Writes at most text.len bytes; false if an escape is none. */
static bool unescape_url(peg_str text, char *ret_bytes, size_t *ret_len)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        int high;
        int low;

        if (text.ptr[i] != '%') {
            ret_bytes[len++] = text.ptr[i];
            continue;
        }
        if (i + 2 >= text.len)
            return false;
        high = peg__hex_value(text.ptr[i + 1]);
        low = peg__hex_value(text.ptr[i + 2]);
        if (high < 0 || low < 0)
            return false;
        ret_bytes[len++] = (char)(high << 4 | low);
        i += 2;
    }
    *ret_len = len;
    return true;
}

static peg_status read_data_url(struct peg__in *in, const char *name, const char *url,
                                struct data_url *ret_data)
{
    static const char marker[] = ";base64";
    const size_t marker_len = sizeof(marker) - 1;
    const char *head = url + strlen("data:");
    const char *comma = strchr(head, ',');
    const size_t type_len = strcspn(head, ";,");
    PEG_CLEANUP(peg__freep) char *bytes = NULL;
    size_t len = 0;

    if (!comma || type_len >= sizeof(ret_data->type))
        return peg__in_fail(in, name,
                            "is a data: URL that cannot be read: write data:TYPE;base64,BYTES");
    memcpy(ret_data->type, head, type_len);
    ret_data->type[type_len] = '\0';
    if ((size_t)(comma - head) >= marker_len &&
        strncasecmp(comma - marker_len, marker, marker_len) == 0)
        return peg__bytes_decode(in, name, peg__str(comma + 1), &ret_data->reader);
    bytes = peg__alloc(strlen(comma));
    if (!bytes)
        return in->status = peg__fail_nomem(in->reterr);
    if (!unescape_url(peg__str(comma + 1), bytes, &len))
        return peg__in_fail(in, name, "is a data: URL with a broken escape");
    in->status = peg__reader_from_owned(bytes, len, &ret_data->reader, in->reterr);
    if (!in->status)
        bytes = NULL;
    return in->status;
}

/* A data: URL becomes bytes; another one stays what it is. */
static peg_status read_url(struct peg__in *in, const char *name, const char *url,
                           peg_media_def *def, struct data_url *data)
{
    if (!url || def->reader || strncmp(url, "data:", 5) != 0) {
        def->uri = url ? url : def->uri;
        return in->status;
    }
    if (read_data_url(in, name, url, data))
        return in->status;
    def->reader = data->reader;
    if (!def->mime_type && data->type[0])
        def->mime_type = data->type;
    return PEG_OK;
}

/* Some writers keep bytes as a list of numbers. */
static peg_status read_numbers(struct peg__in *in, const peg_json *array, peg_reader **ret_reader)
{
    const size_t n = peg_json_len(array);
    PEG_CLEANUP(peg__freep) char *bytes = peg__alloc(n + 1);
    size_t i = 0;
    peg_status status;

    if (!bytes)
        return in->status = peg__fail_nomem(in->reterr);
    PEG_JSON_EACH_ITEM (array, item) {
        int64_t number = -1;

        if (!peg_json_int64(item, &number) || number < 0 || number > UCHAR_MAX)
            return peg__in_fail(in, "content", "must be base 64, or numbers from 0 to 255");
        bytes[i++] = (char)(unsigned char)number;
    }
    status = peg_reader_from_bytes(peg__strn(bytes, n), ret_reader, in->reterr);
    return in->status = status;
}

static peg_status read_content(struct peg__in *in, peg_media_def *def, struct data_url *data,
                               peg_reader **ret_reader)
{
    const peg_json *content = peg__in_any(in, "content");
    const char *text;

    if (!content)
        return in->status;
    if (content->kind == PEG_JSON_ARRAY)
        return read_numbers(in, content, ret_reader);
    text = peg__in_cstring(in, "content");
    if (!text || !*text)
        return in->status;
    if (strncmp(text, "data:", 5) == 0)
        return read_url(in, "content", text, def, data);
    return peg__bytes_decode(in, "content", peg__str(text), ret_reader);
}

static peg_status read_image(struct peg__in *in, const char *id,
                             const peg_turn_read_options *options, peg_media **ret_media)
{
    PEG_CLEANUP(free_data_url) struct data_url data = {NULL, ""};
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    peg_media_def def = {PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_IMAGE,
                         .tier = options->untrusted ? PEG_TIER_THIRD_PARTY_PUBLIC
                                                    : PEG_TIER_THIRD_PARTY_PRIVATE};
    const char *url;

    peg__members_read(in, image_members, &def);
    url = peg__in_cstring(in, "url");
    peg__in_only(in, image_members);
    if (in->status || read_content(in, &def, &data, &reader))
        return in->status;
    if (reader)
        def.reader = reader;
    if (read_url(in, "url", url && *url ? url : NULL, &def, &data))
        return in->status;
    if (!def.mime_type)
        def.mime_type = type_of_bytes(def.reader);
    return make_media(in, &def, id, ret_media);
}

/* ---- lists ------------------------------------------------------------------------------- */

typedef peg_status (*read_fn)(struct peg__in *in, const char *id,
                              const peg_turn_read_options *options, peg_media **ret_media);

struct list {
    const char *name;
    read_fn read;
    peg_str block_id;
    const peg_turn_read_options *options;
};

static peg_status read_item(struct peg__in *payload, const struct list *list, size_t i,
                            const peg_json *value, struct peg__media_in *media)
{
    char at[PEG__IN_AT];
    char id[PEG_LIMIT_BLOCK_ID_BYTES + 32];
    struct peg__in in = {value, at, payload->is_strict, PEG_OK, payload->reterr};

    snprintf(at, sizeof(at), "%s/%s/%zu", payload->at, list->name, i);
    snprintf(id, sizeof(id), "%.*s-m%zu", PEG_ARG(list->block_id), media->n + 1);
    if (value->kind != PEG_JSON_OBJECT)
        peg__in_fail(&in, NULL, "must be an object that describes media");
    if (!in.status && !list->read(&in, id, list->options, &media->items[media->n]))
        media->n++;
    return payload->status = in.status;
}

static peg_status read_list(struct peg__in *payload, const struct list *list, const peg_json *array,
                            struct peg__media_in *media)
{
    size_t i = 0;

    if (payload->status || !array)
        return payload->status;
    PEG_JSON_EACH_ITEM (array, item) {
        if (read_item(payload, list, i++, item, media))
            break;
    }
    return payload->status;
}

peg_status peg__media_file_read(struct peg__in *payload, peg_str block_id, bool has_images,
                                const peg_turn_read_options *options,
                                struct peg__media_in *ret_media)
{
    const struct list ours = {"media", read_media, block_id, options};
    const struct list theirs = {"images", read_image, block_id, options};
    const peg_json *media = peg__in_kind(payload, "media", PEG_JSON_ARRAY);
    const peg_json *images = has_images ? peg__in_kind(payload, "images", PEG_JSON_ARRAY) : NULL;
    const size_t n = (media ? peg_json_len(media) : 0) + (images ? peg_json_len(images) : 0);
    struct peg__media_in read = {NULL, 0};

    if (payload->status || !n)
        return payload->status;
    if (n > PEG_LIMIT_BLOCK_MEDIA)
        return peg__in_fail(payload, "media", "has more than %d items", PEG_LIMIT_BLOCK_MEDIA);
    read.items = peg__alloc_zero(n, sizeof(peg_media *));
    if (!read.items)
        return payload->status = peg__fail_nomem(payload->reterr);
    if (read_list(payload, &ours, media, &read) || read_list(payload, &theirs, images, &read))
        peg__media_in_free(&read);
    else
        *ret_media = read;
    return payload->status;
}

void peg__media_in_free(struct peg__media_in *media)
{
    for (size_t i = 0; i < media->n; i++)
        peg_media_unref(media->items[i]);
    peg__free(media->items);
    *media = (struct peg__media_in){NULL, 0};
}

/* ---- what is kept of them ----------------------------------------------------- */

/* A second place of an image: only one of the two fits. */
static const peg_json *find_second_uri(const peg_json *image)
{
    const peg_str url = peg_json_str(peg_json_get(image, "url"));
    const peg_json *uri = peg_json_get(image, "file_uri");

    return url.len && peg_json_str(uri).len && !peg__str_starts(url, peg__str("data:")) ? uri
                                                                                        : NULL;
}

/* Whether there is one; adds it unless b is NULL. */
static bool media_item_rest(const peg_json *item, peg_json_builder *b)
{
    bool has_rest = peg__in_has_others(item, media_members);

    if (b)
        peg__in_copy_others(item, media_members, b);
    for (const struct peg__member *member = media_members; member->name; member++)
        if (member->kind == PEG__MEMBER_ENUM && peg__enum_is_foreign(item, member))
            has_rest = peg__member_copy(member->name, peg_json_get(item, member->name), b);
    return has_rest;
}

/* Apart, because an image is written as media, whose own members they must not hide. */
static bool image_item_rest(const peg_json *item, peg_json_builder *b)
{
    const peg_json *uri = find_second_uri(item);

    if (b) {
        peg_json_add_key(b, peg__str("image"));
        peg_json_open_object(b);
        peg__in_copy_others(item, image_members, b);
        peg__member_copy("file_uri", uri, b);
        peg_json_close(b);
    }
    return uri || peg__in_has_others(item, image_members);
}

typedef bool (*rest_fn)(const peg_json *item, peg_json_builder *b);

/* One item for each of the list: null where there is no rest. */
static bool list_rest(const peg_json *array, rest_fn rest, peg_json_builder *b)
{
    bool has_rest = false;

    PEG_JSON_EACH_ITEM (array, item) {
        const bool is_kept = rest(item, NULL);

        has_rest = has_rest || is_kept;
        if (b && !is_kept)
            peg_json_add_null(b);
        if (!b || !is_kept)
            continue;
        peg_json_open_object(b);
        rest(item, b);
        peg_json_close(b);
    }
    return has_rest;
}

bool peg__media_rest(const peg_json *payload, bool has_images, peg_json_builder *b)
{
    const peg_json *media = peg_json_get(payload, "media");
    const peg_json *images = has_images ? peg_json_get(payload, "images") : NULL;
    const bool has_rest =
        list_rest(media, media_item_rest, NULL) || list_rest(images, image_item_rest, NULL);

    if (!b || !has_rest)
        return has_rest;
    peg_json_add_key(b, peg__str("media"));
    peg_json_open_array(b);
    list_rest(media, media_item_rest, b);
    list_rest(images, image_item_rest, b);
    peg_json_close(b);
    return true;
}

/* ---- media ------------------------------------------------------------------------- */

static peg_status write_note(const peg_media_note *note, peg_json_builder *b, peg_error *reterr)
{
    struct peg__fields fields = {0};
    peg_status status;

    peg__members_write(note_members, note, &fields);
    status = peg__fields_write(&fields, b, reterr);
    peg__fields_free(&fields);
    return status;
}

static peg_status write_notes(const void *self, peg_json_builder *b, peg_error *reterr)
{
    const peg_media *media = self;
    peg_status status = PEG_OK;

    peg_json_open_array(b);
    for (size_t i = 0; i < peg_media_n_notes(media) && !status; i++)
        status = write_note(peg_media_note_at(media, i), b, reterr);
    peg_json_close(b);
    return status;
}

static void add_media_fields(const peg_media *media, struct peg__fields *fields)
{
    const peg_media_def def = {.id = peg_media_id(media),
                               .kind = peg_media_kind_of(media),
                               .mime_type = peg_media_mime_type(media),
                               .filename = peg_media_filename(media),
                               .uri = peg_media_uri(media),
                               .file_id = peg_media_file_id(media),
                               .detail = peg_media_detail(media),
                               .tier = peg_media_tier(media),
                               .hazard = peg_media_hazard_of(media),
                               .source = peg_media_source(media)};

    peg__members_write(media_members, &def, fields);
    if (peg_media_n_notes(media))
        peg__fields_made(fields, "notes", write_notes, media);
}

static peg_status write_media(const peg_media *media, const peg_turn_write_options *options,
                              const peg_json *rest, peg_json_builder *b, peg_error *reterr)
{
    struct peg__fields fields = {0};
    struct peg__bytes bytes = {0};
    peg_status status = PEG_OK;

    add_media_fields(media, &fields);
    if (peg_media_has_bytes(media)) {
        status = peg__bytes_place(peg_media_reader(media), options, &bytes, reterr);
        if (!status)
            peg__bytes_fields(&bytes, &fields);
    }
    if (!status) {
        peg__fields_members(&fields, rest);
        status = peg__fields_write(&fields, b, reterr);
    }
    peg__bytes_free(&bytes);
    peg__fields_free(&fields);
    return status;
}

peg_status peg__media_file_write(const void *self, peg_json_builder *b, peg_error *reterr)
{
    const struct peg__media_list *list = self;
    peg_status status = PEG_OK;

    peg_json_open_array(b);
    for (size_t i = 0; i < peg_block_n_media(list->block) && !status; i++)
        status = write_media(peg_block_media(list->block, i), list->options,
                             list->rest ? peg_json_at(list->rest, i) : NULL, b, reterr);
    peg_json_close(b);
    return status;
}
