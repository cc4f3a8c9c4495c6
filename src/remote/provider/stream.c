/* SPDX-License-Identifier: Apache-2.0 */

/* Frames to the gateway: what all others that send them share. On the loop. */

#include "base/mem.h"
#include "remote/provider/provider.h"

struct remote__prov_stream *remote__prov_current(const peg_provider *prov)
{
    struct remote__prov_stream *newest = prov->streams;

    return newest && !newest->is_leaving ? newest : NULL;
}

void remote__prov_break(struct remote__prov_stream *stream)
{
    stream->is_broken = true;
    grpc_rpc_cancel(stream->rpc);
}

peg_status remote__prov_try_send(struct remote__prov_stream *stream,
                                 Pegboard__V1__AttachRequest__FrameCase kind, void *frame,
                                 peg_error *reterr)
{
    Pegboard__V1__AttachRequest request = PEGBOARD__V1__ATTACH_REQUEST__INIT;

    request.frame_case = kind;
    request.hello = frame; /* a union of pointers */
    return pegboard_v1_registry_attach_say(stream->rpc, &request, reterr);
}

void remote__prov_send(struct remote__prov_stream *stream,
                       Pegboard__V1__AttachRequest__FrameCase kind, void *frame)
{
    if (stream->is_broken || stream->is_closed || !stream->rpc)
        return;
    if (remote__prov_try_send(stream, kind, frame, NULL))
        remote__prov_break(stream);
}

void remote__prov_send_nak(struct remote__prov_stream *stream, const char *call_id,
                           uint32_t attempt, Pegboard__V1__Nak__Reason reason)
{
    Pegboard__V1__Nak nak = PEGBOARD__V1__NAK__INIT;

    nak.call_id = peg__unconst(call_id);
    nak.attempt = attempt;
    nak.reason = reason;
    remote__prov_send(stream, PEGBOARD__V1__ATTACH_REQUEST__FRAME_NAK, &nak);
}
