/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_CONFIG_H
#define PEG_TURN_CONFIG_H

/* Checking what a host configured: everything that is wrong is named in one error. */

#include "base/buf.h"
#include "pegboard/runner.h"

/* PEG_EINVAL (E_INVALID_TURN_RUNNER_CONFIG). */
peg_status peg__loop_check(const peg_dispatch_options *loop, peg_error *reterr);
/* The same for a runner's configuration, its loop included. */
peg_status peg__runner_check(const peg_runner_config *config, peg_error *reterr);

#endif
