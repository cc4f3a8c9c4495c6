/* SPDX-License-Identifier: Apache-2.0 */
#include "base/list.h"

#include "t.h"

struct item {
    char name;
    struct item *next;
    struct item *prev;
};

struct queue {
    struct item *first;
    struct item *last;
};

/* The names from the front, each item's prev checked on the way. */
static const char *names_of(const struct item *first, char ret_names[8])
{
    const struct item *before = NULL;
    size_t n = 0;

    for (const struct item *item = first; item; item = item->next) {
        CHECK(item->prev == before);
        ret_names[n++] = item->name;
        before = item;
    }
    ret_names[n] = '\0';
    return ret_names;
}

TEST(list_has_the_latest_item_first)
{
    struct item a = {.name = 'a'};
    struct item b = {.name = 'b'};
    struct item c = {.name = 'c'};
    struct item *first = NULL;
    char names[8];

    PEG_LIST_PUSH(first, &a, next, prev);
    PEG_LIST_PUSH(first, &b, next, prev);
    PEG_LIST_PUSH(first, &c, next, prev);
    CHECK_STR(peg_cstr(names_of(first, names)), "cba");
    PEG_LIST_REMOVE(first, &b, next, prev);
    CHECK_STR(peg_cstr(names_of(first, names)), "ca");
    PEG_LIST_REMOVE(first, &c, next, prev);
    PEG_LIST_REMOVE(first, &a, next, prev);
    CHECK(!first);
}

TEST(queue_keeps_the_order_in_which_items_came)
{
    struct item items[3] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}};
    struct queue queue = {0};
    char names[8];

    for (size_t i = 0; i < 3; i++)
        PEG_QUEUE_APPEND(&queue, &items[i], next, prev);
    CHECK_STR(peg_cstr(names_of(queue.first, names)), "abc");
    PEG_QUEUE_REMOVE(&queue, &items[2], next, prev);
    CHECK(queue.last == &items[1]);
    PEG_QUEUE_REMOVE(&queue, &items[0], next, prev);
    CHECK(queue.first == &items[1] && queue.last == &items[1]);
    PEG_QUEUE_REMOVE(&queue, &items[1], next, prev);
    CHECK(!queue.first && !queue.last);
}
