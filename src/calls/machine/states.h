/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_MACHINE_STATES_H
#define PEG_CALLS_MACHINE_STATES_H

/*
 * The states of the machines of a call and the transitions that are legal. Debug builds assert
 * them, tests cover each, and tools/draw-states draws docs/walks/call.md from these lists: one
 * entry a line.
 */

#include <stdbool.h>

/* ---- coordinator: a call at the node of its callers ---- */

#define CALLS_COORDINATOR_STATES(X)                                                                \
    X(CHECKING, "checking")     /* its payload is being validated */                               \
    X(ADMITTING, "admitting")   /* writes the identity: one decision for each */                   \
    X(PEEKING, "peeking")       /* reads the identity: it may attach, and not begin */             \
    X(LOCATING, "locating")     /* reads the identity of an id: await or stop */                   \
    X(CHOOSING, "choosing")     /* asks for a provider */                                          \
    X(SENT, "sent")             /* a provider was asked to run the attempt */                      \
    X(REVOKING, "revoking")     /* takes the right to start the attempt back */                    \
    X(TELLING, "telling")       /* canceled, but it runs: finds its provider to tell it */         \
    X(GRACE, "grace")           /* the provider may end it by itself */                            \
    X(GIVING_UP, "giving up")   /* finds the provider a last time */                               \
    X(CLOSING, "closing")       /* takes the attempt that would be next: there is none */          \
    X(WRITING, "writing")       /* writes an outcome of its own */                                 \
    X(NOTIFYING, "notifying")   /* reads who else waits for that outcome */                        \
    X(LISTING, "listing")       /* another node coordinates: adds itself to the waiters */         \
    X(GLANCING, "glancing")     /* no room in that list: reads the outcome at once */              \
    X(COMPARING, "comparing")   /* is that outcome of the same call? */                            \
    X(UNLISTED, "unlisted")     /* pauses before it asks to be listed again */                     \
    X(FOLLOWING, "following")   /* waits for the outcome */                                        \
    X(WALKING, "walking")       /* the coordinator is lost: reads who has an attempt */            \
    X(PROBING, "probing")       /* is the owner of that attempt alive? */                          \
    X(TAKING, "taking")         /* takes the open attempt, and with it the call */                 \
    X(CONFIRMING, "confirming") /* is the identity still that call's? */                           \
    X(OVER, "over")             /* its callers have its outcome */

#define CALLS_COORDINATOR_TRANSITIONS(X)                                                           \
    X(CHECKING, ADMITTING)                                                                         \
    X(CHECKING, PEEKING)                                                                           \
    X(CHECKING, LOCATING)                                                                          \
    X(CHECKING, CHOOSING)                                                                          \
    X(CHECKING, OVER)                                                                              \
    X(ADMITTING, PEEKING)                                                                          \
    X(ADMITTING, CHOOSING)                                                                         \
    X(ADMITTING, CLOSING)                                                                          \
    X(ADMITTING, LISTING)                                                                          \
    X(ADMITTING, OVER)                                                                             \
    X(PEEKING, LISTING)                                                                            \
    X(PEEKING, OVER)                                                                               \
    X(LOCATING, LISTING)                                                                           \
    X(LOCATING, OVER)                                                                              \
    X(CHOOSING, SENT)                                                                              \
    X(CHOOSING, CLOSING)                                                                           \
    X(CHOOSING, WRITING)                                                                           \
    X(CHOOSING, OVER)                                                                              \
    X(SENT, CHOOSING)                                                                              \
    X(SENT, REVOKING)                                                                              \
    X(SENT, CLOSING)                                                                               \
    X(SENT, WRITING)                                                                               \
    X(SENT, UNLISTED)                                                                              \
    X(SENT, OVER)                                                                                  \
    X(REVOKING, CHOOSING)                                                                          \
    X(REVOKING, SENT)                                                                              \
    X(REVOKING, TELLING)                                                                           \
    X(REVOKING, CLOSING)                                                                           \
    X(REVOKING, WRITING)                                                                           \
    X(REVOKING, UNLISTED)                                                                          \
    X(REVOKING, OVER)                                                                              \
    X(TELLING, GRACE)                                                                              \
    X(TELLING, CLOSING)                                                                            \
    X(TELLING, WRITING)                                                                            \
    X(TELLING, OVER)                                                                               \
    X(GRACE, GIVING_UP)                                                                            \
    X(GRACE, CLOSING)                                                                              \
    X(GRACE, WRITING)                                                                              \
    X(GRACE, OVER)                                                                                 \
    X(GIVING_UP, CLOSING)                                                                          \
    X(GIVING_UP, WRITING)                                                                          \
    X(GIVING_UP, OVER)                                                                             \
    X(CLOSING, WRITING)                                                                            \
    X(CLOSING, UNLISTED)                                                                           \
    X(WRITING, NOTIFYING)                                                                          \
    X(WRITING, OVER)                                                                               \
    X(NOTIFYING, OVER)                                                                             \
    X(LISTING, FOLLOWING)                                                                          \
    X(LISTING, GLANCING)                                                                           \
    X(LISTING, UNLISTED)                                                                           \
    X(LISTING, OVER)                                                                               \
    X(GLANCING, COMPARING)                                                                         \
    X(GLANCING, UNLISTED)                                                                          \
    X(GLANCING, OVER)                                                                              \
    X(COMPARING, LISTING)                                                                          \
    X(COMPARING, UNLISTED)                                                                         \
    X(COMPARING, CHECKING)                                                                         \
    X(COMPARING, OVER)                                                                             \
    X(UNLISTED, LISTING)                                                                           \
    X(UNLISTED, OVER)                                                                              \
    X(FOLLOWING, LISTING)                                                                          \
    X(FOLLOWING, WALKING)                                                                          \
    X(FOLLOWING, CHECKING)                                                                         \
    X(FOLLOWING, OVER)                                                                             \
    X(WALKING, FOLLOWING)                                                                          \
    X(WALKING, PROBING)                                                                            \
    X(WALKING, TAKING)                                                                             \
    X(WALKING, CONFIRMING)                                                                         \
    X(WALKING, OVER)                                                                               \
    X(PROBING, FOLLOWING)                                                                          \
    X(PROBING, WALKING)                                                                            \
    X(PROBING, CHOOSING)                                                                           \
    X(PROBING, WRITING)                                                                            \
    X(PROBING, OVER)                                                                               \
    X(TAKING, FOLLOWING)                                                                           \
    X(TAKING, CONFIRMING)                                                                          \
    X(TAKING, OVER)                                                                                \
    X(CONFIRMING, CHOOSING)                                                                        \
    X(CONFIRMING, WRITING)                                                                         \
    X(CONFIRMING, CLOSING)                                                                         \
    X(CONFIRMING, OVER)

#define CALLS_STATE_ENUM(name, text) CALLS_##name,
enum calls_state { CALLS_COORDINATOR_STATES(CALLS_STATE_ENUM) CALLS_N_STATES };

const char *calls_state_name(enum calls_state state);
/* Does another node coordinate the call, or is that not known yet? */
bool calls_state_follows(enum calls_state state);
/* Is the transition in the list? Staying is. */
bool calls_state_may_become(enum calls_state from, enum calls_state to);

/* Tests count the steps of machines here; NULL: nothing is counted. */
extern void (*calls_on_step)(enum calls_state from, int event, enum calls_state to);

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
    X(OVER, "over")                               /* nothing is left to do here */

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
