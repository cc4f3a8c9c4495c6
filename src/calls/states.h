/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_STATES_H
#define PEG_CALLS_STATES_H

/*
 * The states of the machines of a call and the transitions that are legal. Debug builds assert
 * them, tests cover each, and tools/draw-states draws docs/walks/call.md from these lists: one
 * entry a line.
 */

/* ---- assignment: one attempt of a call on its provider's side ---- */

#define CALLS_ASSIGNMENT_STATES(X)                                                                 \
    X(QUEUED, "queued")                   /* waits until its provider has a place */               \
    X(CLAIMING, "claiming")               /* writes the right to start it */                       \
    X(REPORTED, "reported")               /* in its provider's Hello; coordinator not notified */  \
    X(RUNNING, "running")                 /* its provider has it */                                \
    X(CHECKING_RESULT, "checking result") /* reads whether it has ended; its provider has it */    \
    X(CHECKING_CLAIM, "checking claim")   /* it has not: reads whose it is */                      \
    X(CHECKING_ENDED, "checking ended")   /* it has: reads whose it was */                         \
    X(VALIDATING, "validating")           /* a worker reads its result */                          \
    X(VERIFYING, "verifying")             /* has a result: reads whether it is its provider's */   \
    X(RETURNING, "returning")             /* will not start: reads whether it was to start it */   \
    X(READING_DEADLINE, "reading deadline")       /* reads how long its result has to be kept */   \
    X(WRITING, "writing")                         /* writes its result */                          \
    X(WRITING_PLACEHOLDER, "writing placeholder") /* no room for the result: writes a small one */ \
    X(NOTIFYING, "notifying")                     /* reads which loops wait for its result */      \
    X(OVER, "over")

#define CALLS_ASSIGNMENT_TRANSITIONS(X)                                                            \
    X(QUEUED, CLAIMING)                                                                            \
    X(QUEUED, OVER)                                                                                \
    X(CLAIMING, RUNNING)                                                                           \
    X(CLAIMING, OVER)                                                                              \
    X(RUNNING, REPORTED)                                                                           \
    X(REPORTED, RUNNING)                                                                           \
    X(REPORTED, CHECKING_RESULT)                                                                   \
    X(RUNNING, CHECKING_RESULT)                                                                    \
    X(CHECKING_RESULT, CHECKING_CLAIM)                                                             \
    X(CHECKING_RESULT, CHECKING_ENDED)                                                             \
    X(CHECKING_RESULT, RUNNING)                                                                    \
    X(CHECKING_CLAIM, RUNNING)                                                                     \
    X(CHECKING_ENDED, RUNNING)                                                                     \
    X(RUNNING, VALIDATING)                                                                         \
    X(RUNNING, VERIFYING)                                                                          \
    X(RUNNING, RETURNING)                                                                          \
    X(RUNNING, READING_DEADLINE)                                                                   \
    X(RUNNING, WRITING)                                                                            \
    X(RUNNING, OVER)                                                                               \
    X(VALIDATING, VERIFYING)                                                                       \
    X(VALIDATING, READING_DEADLINE)                                                                \
    X(VALIDATING, WRITING)                                                                         \
    X(VALIDATING, OVER)                                                                            \
    X(VERIFYING, READING_DEADLINE)                                                                 \
    X(VERIFYING, WRITING)                                                                          \
    X(VERIFYING, OVER)                                                                             \
    X(RETURNING, OVER)                                                                             \
    X(READING_DEADLINE, WRITING)                                                                   \
    X(READING_DEADLINE, OVER)                                                                      \
    X(WRITING, WRITING_PLACEHOLDER)                                                                \
    X(WRITING, NOTIFYING)                                                                          \
    X(WRITING, OVER)                                                                               \
    X(WRITING_PLACEHOLDER, NOTIFYING)                                                              \
    X(WRITING_PLACEHOLDER, OVER)                                                                   \
    X(NOTIFYING, WRITING)                                                                          \
    X(NOTIFYING, OVER)

#define CALLS_ASSIGNMENT_EVENTS(X)                                                                 \
    X(ANSWER, "answer")       /* of the bus, to what it asked last */                              \
    X(RETRY, "retry")         /* the time that it armed is over */                                 \
    X(RESET, "reset")         /* the registers may have been lost, and nothing is pending */       \
    X(CANCEL, "cancel")       /* by its coordinator */                                             \
    X(ASK, "ask")             /* by its coordinator: is it here? */                                \
    X(LOST, "lost")           /* its provider did not come back */                                 \
    X(PLACE, "place")         /* its provider has one for it */                                    \
    X(REFUSE, "refuse")       /* its provider takes nothing out of the queue any more */           \
    X(HELLO, "hello")         /* its provider has come back, and lists what it has */              \
    X(LISTED, "listed")       /* it is in that list */                                             \
    X(UNLISTED, "unlisted")   /* it is not, and its provider has been elsewhere meanwhile */       \
    X(NOTIFY, "notify")       /* its coordinator is to learn where it is */                        \
    X(REVIEW, "review")       /* is it still worth its place? */                                   \
    X(OUTPUT, "output")       /* of the tool */                                                    \
    X(GIVE_BACK, "give back") /* its provider has not started it, and will not */                  \
    X(VALIDATE, "validate")   /* a worker begins to read its result */                             \
    X(RESULT, "result")       /* is there, in the form that is written */                          \
    X(DISCARD, "discard")     /* has come, and there is no memory for it */

#endif
