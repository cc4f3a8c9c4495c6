/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../t.h"
#include "base/text/str.h"

/* ---- fixture: a hook that remembers ---------------------------------------- */

struct heard {
    int n;
    peg_log_level level;
    char code[32];
    char message[PEG_LOG_MESSAGE_BYTES];
};

static void listen(peg_log_level level, const char *code, const char *message, void *user)
{
    struct heard *heard = user;

    heard->n++;
    heard->level = level;
    snprintf(heard->code, sizeof(heard->code), "%s", code);
    snprintf(heard->message, sizeof(heard->message), "%s", message);
}

/* ---- tests ------------------------------------------------------------------ */

TEST(log_without_a_hook_is_silent_and_safe)
{
    CHECK_INT(peg_log_set(NULL, PEG_LOG_DEBUG, NULL), PEG_OK);

    peg__log(PEG_LOG_ERROR, "E_TEST", "nobody hears %d", 1);

    CHECK(!peg__log_wants(PEG_LOG_ERROR));
}

TEST(log_hands_level_code_and_message_to_the_hook)
{
    struct heard heard = {0};

    CHECK_INT(peg_log_set(listen, PEG_LOG_DEBUG, &heard), PEG_OK);
    peg__log(PEG_LOG_WARN, "E_TEST", "%d of %s", 3, "seven");
    CHECK_INT(peg_log_set(NULL, PEG_LOG_DEBUG, NULL), PEG_OK);

    CHECK_INT(heard.n, 1);
    CHECK_INT(heard.level, PEG_LOG_WARN);
    CHECK_STR(peg__str(heard.code), "E_TEST");
    CHECK_STR(peg__str(heard.message), "3 of seven");
}

TEST(log_drops_what_is_below_the_level)
{
    struct heard heard = {0};

    CHECK_INT(peg_log_set(listen, PEG_LOG_WARN, &heard), PEG_OK);
    CHECK(!peg__log_wants(PEG_LOG_INFO));
    CHECK(peg__log_wants(PEG_LOG_WARN));
    peg__log(PEG_LOG_INFO, "", "not wanted");
    peg__log(PEG_LOG_ERROR, "", "wanted");
    CHECK_INT(peg_log_set(NULL, PEG_LOG_DEBUG, NULL), PEG_OK);

    CHECK_INT(heard.n, 1);
    CHECK_STR(peg__str(heard.message), "wanted");
}

TEST(log_is_silent_again_when_the_hook_is_unset)
{
    struct heard heard = {0};

    CHECK_INT(peg_log_set(listen, PEG_LOG_DEBUG, &heard), PEG_OK);
    CHECK_INT(peg_log_set(NULL, PEG_LOG_DEBUG, NULL), PEG_OK);
    peg__log(PEG_LOG_ERROR, "E_TEST", "late");

    CHECK_INT(heard.n, 0);
}

TEST(log_cuts_a_long_message_at_a_character)
{
    struct heard heard = {0};
    char text[PEG_LOG_MESSAGE_BYTES * 2];

    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa9", 3);
    CHECK_INT(peg_log_set(listen, PEG_LOG_DEBUG, &heard), PEG_OK);
    peg__log(PEG_LOG_INFO, "", "x%s", text);
    peg__log(PEG_LOG_INFO, "", "%s", text);
    CHECK_INT(peg_log_set(NULL, PEG_LOG_DEBUG, NULL), PEG_OK);

    CHECK_INT(heard.n, 2);
    CHECK_INT(strlen(heard.message), PEG_LOG_MESSAGE_BYTES - 1);
    CHECK_STR(peg__str(heard.message + PEG_LOG_MESSAGE_BYTES - 6), "\xc3\xa9...");
}

TEST(log_refuses_a_level_that_does_not_exist)
{
    struct heard heard = {0};

    CHECK_INT(peg_log_set(listen, (peg_log_level)4, &heard), PEG_EINVAL);
    CHECK_INT(peg_log_set(listen, (peg_log_level)-1, &heard), PEG_EINVAL);

    CHECK(!peg__log_wants(PEG_LOG_ERROR));
}

TEST(log_levels_have_names)
{
    CHECK_STR(peg__str(peg_log_level_name(PEG_LOG_DEBUG)), "debug");
    CHECK_STR(peg__str(peg_log_level_name(PEG_LOG_ERROR)), "error");
    CHECK_STR(peg__str(peg_log_level_name((peg_log_level)9)), "unknown");
}

struct meddler {
    int n;
    peg_status set_status;
};

static void meddle(peg_log_level level, const char *code, const char *message, void *user)
{
    struct meddler *meddler = user;

    (void)level;
    (void)code;
    (void)message;
    meddler->n++;
    peg__log(PEG_LOG_ERROR, "", "from within");
    meddler->set_status = peg_log_set(NULL, PEG_LOG_DEBUG, NULL);
}

TEST(log_from_within_a_hook_is_dropped_and_the_hook_stays)
{
    struct meddler meddler = {0};

    CHECK_INT(peg_log_set(meddle, PEG_LOG_DEBUG, &meddler), PEG_OK);
    peg__log(PEG_LOG_INFO, "", "one");
    peg__log(PEG_LOG_INFO, "", "two");
    CHECK_INT(peg_log_set(NULL, PEG_LOG_DEBUG, NULL), PEG_OK);

    CHECK_INT(meddler.n, 2);
    CHECK_INT(meddler.set_status, PEG_EINVAL);
}

/* ---- threads ---------------------------------------------------------------- */

enum { N_THREADS = 4, N_CHANGES = 500 };

/* A hook's user that says when it may no longer be called. */
struct listener {
    atomic_int n;
    atomic_bool retired;
    atomic_bool was_called_late;
};

static void note(peg_log_level level, const char *code, const char *message, void *user)
{
    struct listener *listener = user;

    (void)level;
    (void)code;
    (void)message;
    atomic_fetch_add(&listener->n, 1);
    if (atomic_load(&listener->retired))
        atomic_store(&listener->was_called_late, true);
}

static void *talk_until(void *arg)
{
    const atomic_bool *stop = arg;

    while (!atomic_load(stop))
        peg__log(PEG_LOG_INFO, "", "still here");
    return NULL;
}

TEST(log_hook_is_never_called_after_it_was_replaced)
{
    static struct listener listeners[N_CHANGES];
    pthread_t threads[N_THREADS];
    atomic_bool stop = false;
    int n = 0;

    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, talk_until, &stop), 0);
    for (int i = 0; i < N_CHANGES; i++) {
        CHECK_INT(peg_log_set(note, PEG_LOG_DEBUG, &listeners[i]), PEG_OK);
        if (i > 0)
            atomic_store(&listeners[i - 1].retired, true);
    }
    /* The last one is awaited, so that the test can't pass with nobody talking. */
    while (!atomic_load(&listeners[N_CHANGES - 1].n))
        sched_yield();
    atomic_store(&stop, true);
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_INT(peg_log_set(NULL, PEG_LOG_DEBUG, NULL), PEG_OK);

    for (int i = 0; i < N_CHANGES; i++) {
        CHECK(!atomic_load(&listeners[i].was_called_late));
        n += atomic_load(&listeners[i].n);
    }
    CHECK(n > 0);
}
