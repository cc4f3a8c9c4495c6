/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_TELEMETRY_METRICS_PAGE_H
#define PEG_GATEWAY_TELEMETRY_METRICS_PAGE_H

/*
 * The text of /metrics, made when somebody asks and kept for PEG_LIMIT_GATEWAY_METRICS_MS for all
 * others who ask, whatever loop they are on. Who asks while it is being made waits for it.
 *
 *   loop 0   looks at the toolsets, some at a time: their health may be read there only
 *   worker   adds up the counters and writes the text
 *   loop 0   keeps it; each loop wakes those who wait on it
 */

#include "gateway/node.h"
#include "net/http1/http1.h"

struct gw_metrics_page;

peg_status gw_metrics_page_new(struct gw_node *node, struct gw_metrics_page **ret_page,
                               peg_error *reterr);
/* Looks at the node no more: when nobody asks any more, while the loops run; from a thread that is
 * none of theirs. */
void gw_metrics_page_stop(struct gw_metrics_page *page);
/* After the loops, before the metrics. */
struct gw_metrics_page *gw_metrics_page_free(struct gw_metrics_page *page);

/* On the loop `number`: fills the answer, or it comes later. */
void gw_metrics_page_answer(struct gw_metrics_page *page, unsigned number,
                            const struct net_http1_request *request,
                            struct net_http1_answer *answer);
/* Any thread: how many were made. */
uint64_t gw_metrics_page_n_made(const struct gw_metrics_page *page);

#endif
