/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_WORDS_H
#define PEG_TESTS_GATEWAY_WORDS_H

/* Random catalogs, from a seed. Include it behind t.h, or behind stdio and string. */

#include "base/text/str.h"
#include "gateway/catalog/catalog.h"
#include "pegboard/v1/registry.pb-c.h"

static uint64_t words_state = 1;

static inline uint32_t words_random(uint32_t below)
{
    words_state ^= words_state << 13;
    words_state ^= words_state >> 7;
    words_state ^= words_state << 17;
    return (uint32_t)(words_state >> 33) % below;
}

static const char *const words_list[] = {
    "weather",
    "forecast",
    "city",
    "cities",
    "search",
    "searching",
    "searches",
    "invoice",
    "invoices",
    "billing",
    "customer",
    "customers",
    "create",
    "created",
    "delete",
    "update",
    "updating",
    "list",
    "lists",
    "status",
    "statuses",
    "HTTP",
    "getUser",
    "userId",
    "runner",
    "running",
    "run",
    "image",
    "images",
    "convert",
    "currency",
    "exchange",
    "rate",
    "rates",
    "geo",
    "location",
    "map",
    "maps",
    "route",
    "routing",
    "the",
    "a",
    "of",
    "for",
    "and",
    "to",
    "with",
    "by",
    "\xC3\x9Cmsatz",
    "caf\xC3\xA9",
    "\xD0\x9F\xD0\xBE\xD0\xB3\xD0\xBE\xD0\xB4\xD0\xB0",
    "v2",
    "x9",
    "data",
    "database",
    "dates",
    "date",
    "email",
    "emails",
    "mailbox",
    "payments",
    "payment",
    "refund",
    "refunds",
    "ship",
    "shipping",
    "track",
};
enum { WORDS_N = sizeof(words_list) / sizeof(words_list[0]) };

/* Words beyond the list, of syllables: those with small numbers come more often. 0: none. */
static unsigned words_more;

static inline const char *words_made(unsigned number)
{
    static const char *const syllables[] = {"ba", "ker", "lo",  "min", "tor", "pa",  "ren", "si",
                                            "vu", "dan", "gel", "hy",  "jo",  "cru", "fe",  "nix"};
    static char texts[8][32];
    static unsigned next;
    char *text = texts[next++ % 8];

    text[0] = '\0';
    for (number += 16; number > 0; number /= 16)
        strcat(text, syllables[number % 16]);
    return text;
}

static inline const char *words_one(void)
{
    if (words_more && words_random(4))
        return words_made(words_random(words_random(words_more) + 1));
    return words_list[words_random(WORDS_N)];
}

static inline const char *words_gap(void)
{
    static const char *const gaps[] = {" ", " ", " ", "-", "_", ", ", ". ", "/", "", ": "};

    return gaps[words_random(10)];
}

/* Up to n words. */
static inline void words_text(char *text, size_t size, uint32_t n)
{
    size_t len = 0;

    text[0] = '\0';
    for (uint32_t i = words_random(n) + 1; i > 0 && len + 40 < size; i--)
        len += (size_t)snprintf(text + len, size - len, "%s%s", words_one(), words_gap());
}

enum { WORDS_TOOLS = 10 };

/* One toolset; `number` makes its name its own. */
struct words_toolset {
    Pegboard__V1__RegisterRequest msg;
    Pegboard__V1__Tool tools[WORDS_TOOLS];
    Pegboard__V1__Tool *list[WORDS_TOOLS];
    char name[128];
    char description[256];
    char tag[3][64];
    char *tags[3];
    char tool_name[WORDS_TOOLS][64];
    char tool_text[WORDS_TOOLS][160];
    char schema[WORDS_TOOLS][512];
};

static inline const char *words_ascii(void)
{
    const char *word = words_one();

    return (unsigned char)word[0] >= 0x80 || strchr(word, '\xC3') ? "plain" : word;
}

static inline void words_tool(struct words_toolset *t, unsigned i)
{
    Pegboard__V1__Tool *tool = &t->tools[i];

    pegboard__v1__tool__init(tool);
    t->list[i] = tool;
    snprintf(t->tool_name[i], sizeof(t->tool_name[i]), "%s_%s%u", words_ascii(), words_ascii(), i);
    words_text(t->tool_text[i], sizeof(t->tool_text[i]), 8);
    snprintf(
        t->schema[i], sizeof(t->schema[i]),
        "{\"type\":\"object\",\"properties\":{\"%s\":{\"type\":\"string\",\"description\":\"What "
        "to look for, in a few words\"},\"%s_%s\":{\"type\":\"integer\",\"minimum\":%u,"
        "\"maximum\":1000},\"units\":{\"type\":\"string\",\"enum\":[\"metric\",\"imperial\"]},"
        "\"labels\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
        "\"additionalProperties\":false}",
        words_ascii(), words_ascii(), words_ascii(), words_random(1000));
    tool->name = t->tool_name[i];
    tool->description = t->tool_text[i];
    tool->input_schema.data = (uint8_t *)t->schema[i];
    tool->input_schema.len = strlen(t->schema[i]);
}

static inline struct gw_toolset *words_make(unsigned number, unsigned max_tools)
{
    static struct words_toolset t;
    const struct gw_toolset_dates dates = {.owner = PEG_LIT("local"), .revision = number + 1};
    struct gw_toolset *toolset = NULL;

    pegboard__v1__register_request__init(&t.msg);
    snprintf(t.name, sizeof(t.name), "%s.%s-%05u", words_ascii(), words_ascii(), number);
    words_text(t.description, sizeof(t.description), 16);
    t.msg.name = t.name;
    t.msg.description = t.description;
    t.msg.n_tags = words_random(4);
    t.msg.tags = t.tags;
    for (size_t i = 0; i < t.msg.n_tags; i++) {
        snprintf(t.tag[i], sizeof(t.tag[i]), "%s%s", words_one(), words_random(3) ? "" : " Data");
        t.tags[i] = t.tag[i];
    }
    t.msg.n_tools = words_random(max_tools) + 1;
    t.msg.tools = t.list;
    for (unsigned i = 0; i < t.msg.n_tools; i++)
        words_tool(&t, i);
    if (gw_toolset_make(&t.msg, &dates, &toolset, NULL))
        abort();
    return toolset;
}

static inline int words_compare(const void *a, const void *b)
{
    return strcmp((*(struct gw_toolset *const *)a)->name.ptr,
                  (*(struct gw_toolset *const *)b)->name.ptr);
}

#endif
