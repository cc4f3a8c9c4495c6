/* SPDX-License-Identifier: Apache-2.0 */

/* Errors as problem details (RFC 9457): `type` is the name of the error, as gRPC clients see it. */

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/catalog/catalog.h"
#include "gateway/http/internal.h"

static int http_status_of(enum wire_error error)
{
    switch (error) {
    case WIRE_NOT_FOUND:
        return 404;
    case WIRE_SERVICE_UNAVAILABLE:
    case WIRE_OVERLOADED:
        return 503;
    case WIRE_TIMEOUT:
    case WIRE_OUTCOME_UNKNOWN:
        return 504;
    case WIRE_CANCELED:
    case WIRE_CONFLICT:
        return 409;
    case WIRE_PERMISSION_DENIED:
        return 403;
    case WIRE_UNAUTHENTICATED:
        return 401;
    case WIRE_LIMIT:
        return 429;
    case WIRE_UNDECIDED:
        return 422;
    case WIRE_OK:
    case WIRE_FAULT:
    case WIRE_N_ERRORS:
        return 500;
    default:
        return 400;
    }
}

/* For people; RFC 9457 wants the same one for each type. */
static const char *title_of(int status)
{
    switch (status) {
    case 400:
        return "The request is not valid";
    case 401:
        return "Credentials are needed";
    case 403:
        return "Not allowed";
    case 404:
        return "Not found";
    case 409:
        return "In conflict with what is there";
    case 415:
        return "Not JSON";
    case 422:
        return "It cannot be done";
    case 429:
        return "Too much";
    case 503:
        return "Not available now";
    case 504:
        return "It took too long";
    default:
        return "The gateway failed";
    }
}

void gw_problem_of(struct grpc_call *call, const struct grpc_status *status,
                   struct gw_problem *ret_problem)
{
    const struct grpc_metadata *trailers = grpc_bridge_trailers(call);
    peg_str name;
    const enum wire_error error = wire_error_from_status(status, grpc_call_arena(call), &name);

    *ret_problem = (struct gw_problem){
        .type = wire_error_name(error),
        .status = http_status_of(error),
        .detail = status->message,
        .call_id = grpc_metadata_get(trailers, "pegboard-call-id"),
        .started = grpc_metadata_get(trailers, "pegboard-started"),
        .retry_after_ms = grpc_metadata_get(trailers, "pegboard-retry-after-ms"),
        .is_draining = grpc_metadata_get(trailers, "pegboard-draining").len > 0,
        .epoch = grpc_metadata_get(grpc_bridge_headers(call), "pegboard-epoch"),
    };
}

void gw_problem_write(struct peg__out *out, const struct gw_problem *problem)
{
    peg__out_object(out);
    peg__out_cmember(out, "type", problem->type);
    peg__out_cmember(out, "title", title_of(problem->status));
    peg__out_key(out, "status");
    peg__out_integer(out, problem->status);
    peg__out_member(out, "detail", problem->detail.ptr ? problem->detail : peg__strn("", 0));
    if (problem->code.len)
        peg__out_member(out, "code", problem->code);
    if (problem->call_id.len)
        peg__out_member(out, "call_id", problem->call_id);
    if (problem->started.len) {
        peg__out_key(out, "started");
        peg__out_bool(out, peg__str_is(problem->started, "true"));
    }
    if (problem->retry_after_ms.len) {
        peg__out_key(out, "retry_after_ms");
        peg__out_raw(out, problem->retry_after_ms);
    }
    if (problem->is_draining) {
        peg__out_key(out, "draining");
        peg__out_bool(out, true);
    }
    peg__out_end_object(out);
}

/* Whole seconds, as HTTP has them. */
static void add_retry_after(struct gw_answer *answer, peg_str ms, char text[24])
{
    long n = 0;

    for (size_t i = 0; i < ms.len && n < 100000000 && peg__is_digit(ms.ptr[i]); i++)
        n = n * 10 + (ms.ptr[i] - '0');
    snprintf(text, 24, "%ld", (n + 999) / 1000);
    if (ms.len)
        gw_answer_add(answer, "retry-after", peg__str(text));
}

void gw_problem_reply(struct net_http_request *request, const struct gw_node *node,
                      const struct gw_problem *problem)
{
    struct peg__buf body = PEG__BUF(PEG_LIMIT_NET_HTTP_BODY_BYTES);
    struct peg__out out = {.buf = &body};
    struct gw_answer answer;
    char seconds[24];

    gw_problem_write(&out, problem);
    gw_answer_init(&answer, request, node, problem->status, "application/problem+json");
    if (problem->status == 401)
        gw_answer_add(&answer, "www-authenticate", peg__str("Bearer"));
    gw_answer_add(&answer, "pegboard-epoch", problem->epoch);
    add_retry_after(&answer, problem->retry_after_ms, seconds);
    if (body.status)
        net_http_reply_text(request, 503, "out of memory: try again later");
    else
        net_http_reply(request, &answer.answer, peg__buf_view(&body));
    peg__buf_free(&body);
}

void gw_problem_reply_error(struct net_http_request *request, const struct gw_node *node,
                            enum wire_error error, const char *detail)
{
    gw_problem_reply(request, node,
                     &(struct gw_problem){.type = wire_error_name(error),
                                          .status = http_status_of(error),
                                          .detail = peg__str(detail)});
}

void gw_problem_reply_failed(struct net_http_request *request, const struct gw_node *node,
                             const peg_error *error)
{
    gw_problem_reply_error(request, node, gw_wire_error(error), error->message);
}
