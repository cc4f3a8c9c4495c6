/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BENCH_TURN_BENCH_H
#define PEG_BENCH_TURN_BENCH_H

/*
 * Turns as text, in MB/s of that text, through the public headers; beside it what the parts allow:
 * our JSON reader and writer on the same document, and libyaml alone, reading the text to events
 * and writing the same events.
 */

#include <pegboard/pegboard.h>

struct events; /* what libyaml read */

/* Parses to events and forgets them. */
void libyaml_parse(peg_str text);
/* Parses and keeps the events. */
struct events *libyaml_events(peg_str text);
/* Writes them; returns how many bytes. */
size_t libyaml_emit(struct events *events);
void libyaml_free(struct events *events);

#endif
