/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/content.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/limits/content.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"
#include "json/json.h"

enum { CONTENT = PEGBOARD_V1_CONTENT_LIST_CONTENT_FIELD };

_Static_assert((int)CONTENT == (int)PEGBOARD_V1_CALL_TOOL_RESPONSE_CONTENT_FIELD &&
                   (int)CONTENT == (int)PEGBOARD_V1_EMIT_TOOL_RESULT_REQUEST_CONTENT_FIELD,
               "a list joins a response");
_Static_assert((int)WIRE_MEDIA_ID + 1 == PEGBOARD_V1_MEDIA_ID_FIELD &&
                   (int)WIRE_MEDIA_HAZARD + 1 == PEGBOARD_V1_MEDIA_HAZARD_FIELD,
               "words have the numbers of their fields, from 0");

/* ---- reading --------------------------------------------------------------------------------- */

static void read_media_words(struct wire_content *content)
{
    for (unsigned i = 0; i < WIRE_MEDIA_WORDS; i++) {
        const peg_str word = wire_find_bytes(content->media, i + 1);

        content->words[i] = word.ptr ? word : peg__str("");
    }
    content->bytes = wire_find_bytes(content->media, PEGBOARD_V1_MEDIA_DATA_FIELD);
    if (!content->bytes.len)
        content->bytes = wire_find_number(content->media, PEGBOARD_V1_MEDIA_IS_EMPTY_FIELD)
                             ? peg__str("")
                             : (peg_str){NULL, 0};
}

/* A part has one field. */
static bool read_part(peg_str part, struct wire_content *ret_content)
{
    uint64_t tag = 0;
    peg_str bytes = {NULL, 0};

    if (!wire_next_field(&part, &tag, &bytes) || part.len || !bytes.ptr)
        return false;
    *ret_content = (struct wire_content){.bytes = bytes, .media = peg__str("")};
    switch (tag >> 3) {
    case PEGBOARD_V1_CONTENT_TEXT_FIELD:
        ret_content->kind = WIRE_TEXT;
        return true;
    case PEGBOARD_V1_CONTENT_JSON_FIELD:
        ret_content->kind = WIRE_JSON;
        return true;
    case PEGBOARD_V1_CONTENT_BYTES_FIELD:
        ret_content->kind = WIRE_BYTES;
        return true;
    case PEGBOARD_V1_CONTENT_MEDIA_FIELD:
        ret_content->kind = WIRE_MEDIA;
        ret_content->media = bytes;
        read_media_words(ret_content);
        return true;
    default:
        return false;
    }
}

bool wire_content_next(peg_str *rest, struct wire_content *ret_content)
{
    peg_str part = {NULL, 0};

    return wire_next_bytes(rest, CONTENT, &part) && read_part(part, ret_content);
}

bool wire_content_is_there(peg_str message)
{
    peg_str part = {NULL, 0};

    return wire_next_bytes(&message, CONTENT, &part);
}

bool wire_content_next_note(peg_str *rest, struct wire_note *ret_note)
{
    peg_str note = {NULL, 0};

    if (!wire_next_bytes(rest, PEGBOARD_V1_MEDIA_NOTES_FIELD, &note))
        return false;
    *ret_note = (struct wire_note){
        .name = wire_find_bytes(note, PEGBOARD_V1_MEDIA_NOTE_NAME_FIELD),
        .text = wire_find_bytes(note, PEGBOARD_V1_MEDIA_NOTE_TEXT_FIELD),
        .tier = wire_find_bytes(note, PEGBOARD_V1_MEDIA_NOTE_TRUST_TIER_FIELD),
        .is_derived = wire_find_number(note, PEGBOARD_V1_MEDIA_NOTE_DERIVED_FIELD) != 0,
    };
    return true;
}

/* ---- checking -------------------------------------------------------------------------------- */

static peg_status reject_content(peg_error *reterr, const char *why)
{
    return peg__fail(reterr, PEG_EINVAL, "E_CONTENT", "the content of the result: %s", why);
}

static peg_status reject_limit(peg_error *reterr, const char *why)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_CONTENT", "the content of the result: %s", why);
}

static bool is_content_text(peg_str text)
{
    return !text.len || (peg__utf8_is_valid(text) && !memchr(text.ptr, '\0', text.len));
}

/* Printable ASCII, "type/subtype" and perhaps parameters: it becomes a header elsewhere. */
static bool is_mime_type(peg_str type)
{
    const char *slash = type.len ? memchr(type.ptr, '/', type.len) : NULL;

    for (size_t i = 0; i < type.len; i++) {
        if (type.ptr[i] < ' ' || type.ptr[i] > '~')
            return false;
    }
    return slash && slash > type.ptr && slash + 1 < type.ptr + type.len;
}

static bool is_media_kind(peg_str kind)
{
    return peg__str_is(kind, "image") || peg__str_is(kind, "audio") || peg__str_is(kind, "video") ||
           peg__str_is(kind, "document");
}

static peg_status check_media_words(const struct wire_content *media, peg_error *reterr)
{
    const peg_str *words = media->words;

    for (unsigned i = 0; i < WIRE_MEDIA_WORDS; i++) {
        if (words[i].len > PEG_LIMIT_CONTENT_WORD_BYTES)
            return reject_limit(reterr, "a string of media has more than 4096 bytes: shorten it");
        if (!is_content_text(words[i]))
            return reject_content(reterr, "a string of media is not UTF-8, or has a NUL");
    }
    if (words[WIRE_MEDIA_TYPE].len > PEG_LIMIT_CONTENT_TYPE_BYTES)
        return reject_limit(reterr, "the mime_type of media has more than 256 bytes: shorten it");
    if (!is_mime_type(words[WIRE_MEDIA_TYPE]))
        return reject_content(reterr, "media has no mime_type such as image/png");
    if (!is_media_kind(words[WIRE_MEDIA_KIND]))
        return reject_content(
            reterr, "the kind of media is none of \"image\", \"audio\", \"video\", \"document\"");
    if (!media->bytes.ptr && !words[WIRE_MEDIA_URI].len && !words[WIRE_MEDIA_FILE_ID].len)
        return reject_content(reterr, "media has no data, and no uri or file_id where it is");
    return PEG_OK;
}

static peg_status check_media_notes(peg_str media, peg_error *reterr)
{
    struct wire_note note;
    unsigned n = 0;

    while (wire_content_next_note(&media, &note)) {
        if (++n > PEG_LIMIT_MEDIA_NOTES)
            return reject_limit(reterr, "media has more than 64 notes: send fewer");
        if (!note.name.len || note.name.len > PEG_LIMIT_CONTENT_WORD_BYTES || !note.text.len)
            return reject_content(reterr,
                                  "a note of media has no name of at most 4096 bytes, or no text");
        if (!is_content_text(note.name) || !is_content_text(note.text) ||
            !is_content_text(note.tier))
            return reject_content(reterr, "a note of media is not UTF-8, or has a NUL");
    }
    return PEG_OK;
}

/* Whatever its fields are: what does not end where it should could not be read. */
static bool is_whole_message(peg_str message)
{
    uint64_t tag;
    peg_str bytes;

    while (message.len) {
        if (!wire_next_field(&message, &tag, &bytes))
            return false;
    }
    return true;
}

static peg_status check_content_part(const struct wire_content *part, peg_error *reterr)
{
    peg_status status;

    if (part->kind == WIRE_TEXT && !is_content_text(part->bytes))
        return reject_content(reterr, "text is not UTF-8, or has a NUL");
    if (part->kind != WIRE_MEDIA)
        return PEG_OK;
    if (!is_whole_message(part->media))
        return reject_content(reterr, "media cannot be read");
    status = check_media_words(part, reterr);
    return status ? status : check_media_notes(part->media, reterr);
}

bool wire_content_is_list(peg_str list)
{
    uint64_t tag = 0;
    peg_str bytes;
    unsigned n = 0;

    for (; list.len && n <= PEG_LIMIT_CONTENT_PARTS; n++) {
        if (!wire_next_field(&list, &tag, &bytes) || tag != ((uint64_t)CONTENT << 3 | 2))
            return false;
    }
    return n && n <= PEG_LIMIT_CONTENT_PARTS;
}

peg_status wire_content_check(peg_str message, peg_error *reterr)
{
    peg_str bytes = {NULL, 0};
    unsigned n = 0;

    while (wire_next_bytes(&message, CONTENT, &bytes)) {
        struct wire_content part;
        peg_status status;

        if (++n > PEG_LIMIT_CONTENT_PARTS)
            return reject_limit(reterr, "it has more than 64 parts: send fewer");
        if (!read_part(bytes, &part))
            return reject_content(reterr,
                                  "a part has not exactly one of text, json, bytes and media");
        status = check_content_part(&part, reterr);
        if (status)
            return status;
    }
    return n ? PEG_OK : reject_content(reterr, "it has no part");
}

/* ---- writing --------------------------------------------------------------------------------- */

static void pack_head(struct peg__buf *out, unsigned field, size_t len)
{
    char head[1 + WIRE_MAX_VARINT];

    peg__buf_add(out, head, (size_t)(wire_put_head(head, field, len) - head));
}

static void pack_field(struct peg__buf *out, unsigned field, peg_str bytes)
{
    pack_head(out, field, bytes.len);
    peg__buf_str(out, bytes);
}

static size_t packed_size(size_t len)
{
    return 1 + wire_varint_size(len) + len;
}

void wire_content_add(struct peg__buf *list, enum wire_content_kind kind, peg_str bytes)
{
    static const unsigned fields[] = {
        [WIRE_TEXT] = PEGBOARD_V1_CONTENT_TEXT_FIELD,
        [WIRE_JSON] = PEGBOARD_V1_CONTENT_JSON_FIELD,
        [WIRE_BYTES] = PEGBOARD_V1_CONTENT_BYTES_FIELD,
    };

    pack_head(list, CONTENT, packed_size(bytes.len));
    pack_field(list, fields[kind], bytes);
}

static void pack_word(struct peg__buf *out, unsigned field, peg_str word)
{
    if (word.len)
        pack_field(out, field, word);
}

static void pack_flag(struct peg__buf *out, unsigned field)
{
    char flag[2];

    peg__buf_add(out, flag, (size_t)(wire_put_number(flag, field, 1) - flag));
}

static void pack_note(struct peg__buf *out, const struct wire_note *note)
{
    const size_t len = wire_bytes_size(note->name) + wire_bytes_size(note->text) +
                       wire_bytes_size(note->tier) + wire_number_size(note->is_derived);

    pack_head(out, PEGBOARD_V1_MEDIA_NOTES_FIELD, len);
    pack_word(out, PEGBOARD_V1_MEDIA_NOTE_NAME_FIELD, note->name);
    pack_word(out, PEGBOARD_V1_MEDIA_NOTE_TEXT_FIELD, note->text);
    pack_word(out, PEGBOARD_V1_MEDIA_NOTE_TRUST_TIER_FIELD, note->tier);
    if (note->is_derived)
        pack_flag(out, PEGBOARD_V1_MEDIA_NOTE_DERIVED_FIELD);
}

void wire_content_add_media(struct peg__buf *list, const peg_str words[WIRE_MEDIA_WORDS],
                            const struct wire_note *notes, size_t n_notes, peg_str data)
{
    struct peg__buf fields = PEG__BUF(list->max);
    size_t len;

    for (unsigned i = 0; i < WIRE_MEDIA_WORDS; i++)
        pack_word(&fields, i + 1, words[i]);
    for (size_t i = 0; i < n_notes; i++)
        pack_note(&fields, &notes[i]);
    if (data.ptr && !data.len)
        pack_flag(&fields, PEGBOARD_V1_MEDIA_IS_EMPTY_FIELD);
    len = fields.len + wire_bytes_size(data);
    pack_head(list, CONTENT, packed_size(len));
    pack_head(list, PEGBOARD_V1_CONTENT_MEDIA_FIELD, len);
    peg__buf_str(list, peg__buf_view(&fields));
    pack_word(list, PEGBOARD_V1_MEDIA_DATA_FIELD, data);
    if (fields.status)
        list->status = fields.status;
    peg__buf_free(&fields);
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void write_base64(struct peg__out *out, peg_str bytes)
{
    const size_t len = peg__base64_len(bytes.len);
    char *at;

    peg__out_key(out, "base64");
    peg__out_raw(out, peg__str("\""));
    at = peg__buf_reserve(out->buf, len + 1);
    if (at) {
        peg__base64_encode(bytes, at);
        out->buf->len += len;
        at[len] = '\0';
    }
    peg__buf_putc(out->buf, '"');
}

static void write_notes_json(struct peg__out *out, peg_str media)
{
    struct wire_note note;
    bool has_any = false;

    while (wire_content_next_note(&media, &note)) {
        if (!has_any) {
            peg__out_key(out, "notes");
            peg__out_object(out);
            has_any = true;
        }
        peg__out_key_str(out, note.name);
        peg__out_object(out);
        peg__out_member(out, "text", note.text);
        peg__out_member(out, "trustTier", note.tier.ptr ? note.tier : peg__str("unset"));
        peg__out_key(out, "derivedFromMedia");
        peg__out_bool(out, note.is_derived);
        peg__out_end_object(out);
    }
    if (has_any)
        peg__out_end_object(out);
}

/* As peg_media_describe(), and the bytes. */
static void write_media_json(struct peg__out *out, const struct wire_content *media)
{
    static const struct {
        const char *key;
        enum wire_media_word word;
        bool is_optional;
    } members[] = {
        {"id", WIRE_MEDIA_ID, false},          {"kind", WIRE_MEDIA_KIND, false},
        {"mimeType", WIRE_MEDIA_TYPE, false},  {"filename", WIRE_MEDIA_FILENAME, false},
        {"trustTier", WIRE_MEDIA_TIER, false}, {"modalityHazard", WIRE_MEDIA_HAZARD, false},
        {"source", WIRE_MEDIA_SOURCE, true},   {"uri", WIRE_MEDIA_URI, true},
        {"fileId", WIRE_MEDIA_FILE_ID, true},  {"detail", WIRE_MEDIA_DETAIL, true},
    };

    peg__out_object(out);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const peg_str word = media->words[members[i].word];

        if (word.len || !members[i].is_optional)
            peg__out_member(out, members[i].key, word);
    }
    write_notes_json(out, media->media);
    if (media->bytes.ptr)
        write_base64(out, media->bytes);
    peg__out_end_object(out);
}

static void write_bytes_json(struct peg__out *out, peg_str bytes)
{
    if (peg__utf8_is_valid(bytes)) {
        peg__out_string(out, bytes);
        return;
    }
    peg__out_object(out);
    write_base64(out, bytes);
    peg__out_end_object(out);
}

static void write_part_json(struct peg__out *out, const struct wire_content *part)
{
    switch (part->kind) {
    case WIRE_TEXT:
        peg__out_string(out, part->bytes);
        break;
    case WIRE_JSON:
        peg__out_raw(out, part->bytes);
        break;
    case WIRE_BYTES:
        write_bytes_json(out, part->bytes);
        break;
    case WIRE_MEDIA:
        write_media_json(out, part);
        break;
    }
}

/* One part that is no media stands alone, media alone in a list of their own. */
static const char *name_list(peg_str message)
{
    struct wire_content part;
    unsigned n = 0;
    unsigned n_media = 0;

    while (wire_content_next(&message, &part)) {
        n++;
        n_media += part.kind == WIRE_MEDIA;
    }
    if (n == n_media)
        return "media";
    return n == 1 ? NULL : "content";
}

void wire_content_write_json(peg_str message, struct peg__buf *buf)
{
    struct peg__out out = {.buf = buf};
    const char *list = name_list(message);
    struct wire_content part;

    if (list) {
        peg__out_object(&out);
        peg__out_key(&out, list);
        peg__out_array(&out);
    }
    while (wire_content_next(&message, &part))
        write_part_json(&out, &part);
    if (list) {
        peg__out_end_array(&out);
        peg__out_end_object(&out);
    }
}

static void pack_too_large(struct peg__buf *out)
{
    const peg_str code = peg__str("E_RESULT_TOO_LARGE");
    const peg_str message = peg__str("the result is larger than 8 MiB as JSON: accept typed "
                                     "content, or ask for less");

    pack_head(out, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD,
              wire_bytes_size(code) + wire_bytes_size(message));
    pack_field(out, PEGBOARD_V1_TOOL_ERROR_CODE_FIELD, code);
    pack_field(out, PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD, message);
}

peg_status wire_content_flatten(peg_str response, struct peg__buf *out)
{
    struct peg__buf json = PEG__BUF(PEG_LIMIT_GATEWAY_RESULT_BYTES);
    peg_str data = {NULL, 0};

    wire_content_write_json(response, &json);
    if (json.status == PEG_ELIMIT)
        pack_too_large(out);
    else if (json.status)
        out->status = json.status;
    else
        pack_field(out, PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD, peg__buf_view(&json));
    peg__buf_free(&json);
    while (wire_next_bytes(&response, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD, &data))
        pack_field(out, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD, data);
    return out->status;
}
