/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "bench.h"

static void fail(const char *what)
{
    fprintf(stderr, "turn-bench: libyaml: %s\n", what);
    exit(1);
}

static void open_parser(yaml_parser_t *parser, peg_str text)
{
    if (!yaml_parser_initialize(parser))
        fail("no memory");
    yaml_parser_set_input_string(parser, (const unsigned char *)text.ptr, text.len);
}

void libyaml_parse(peg_str text)
{
    yaml_parser_t parser;
    yaml_event_t event;
    bool is_end = false;

    open_parser(&parser, text);
    while (!is_end) {
        if (!yaml_parser_parse(&parser, &event))
            fail("cannot parse");
        is_end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
}

struct events {
    yaml_event_t *items;
    size_t n;
};

struct events *libyaml_events(peg_str text)
{
    struct events *events = calloc(1, sizeof(*events));
    size_t capacity = 0;
    yaml_parser_t parser;

    open_parser(&parser, text);
    do {
        if (events->n == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            events->items = realloc(events->items, capacity * sizeof(*events->items));
        }
        if (!events->items || !yaml_parser_parse(&parser, &events->items[events->n]))
            fail("cannot parse");
    } while (events->items[events->n++].type != YAML_STREAM_END_EVENT);
    yaml_parser_delete(&parser);
    return events;
}

/* The emitter takes events over, so each gets a copy; copying scalars is a part of what it costs to
 * use it. */
static void copy_event(const yaml_event_t *from, yaml_event_t *to)
{
    static unsigned char none[1];
    unsigned char *value = from->data.scalar.value;

    switch (from->type) {
    case YAML_SCALAR_EVENT:
        if (!yaml_scalar_event_initialize(to, NULL, NULL, value ? value : none,
                                          (int)from->data.scalar.length, 1, 1,
                                          from->data.scalar.style))
            fail("no memory");
        break;
    case YAML_SEQUENCE_START_EVENT:
        yaml_sequence_start_event_initialize(to, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE);
        break;
    case YAML_MAPPING_START_EVENT:
        yaml_mapping_start_event_initialize(to, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE);
        break;
    default:
        *to = *from;
        break;
    }
}

struct counter {
    size_t n;
};

static int count(void *user, unsigned char *bytes, size_t n)
{
    (void)bytes;
    ((struct counter *)user)->n += n;
    return 1;
}

size_t libyaml_emit(struct events *events)
{
    struct counter counter = {0};
    yaml_emitter_t emitter;

    if (!yaml_emitter_initialize(&emitter))
        fail("no memory");
    yaml_emitter_set_output(&emitter, count, &counter);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    for (size_t i = 0; i < events->n; i++) {
        yaml_event_t event;

        copy_event(&events->items[i], &event);
        if (!yaml_emitter_emit(&emitter, &event))
            fail("cannot emit");
    }
    yaml_emitter_delete(&emitter);
    return counter.n;
}

void libyaml_free(struct events *events)
{
    for (size_t i = 0; i < events->n; i++)
        yaml_event_delete(&events->items[i]);
    free(events->items);
    free(events);
}
