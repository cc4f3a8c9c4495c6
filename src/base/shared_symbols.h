/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_SHARED_SYMBOLS_H
#define PEG_BASE_SHARED_SYMBOLS_H

/* Functions that our own other shared libraries (libpegboard-engine) take from libpegboard. They
 * are no API: a library is built and installed together with the libpegboard that it needs. */
#define PEG__SHARED __attribute__((visibility("default")))

#endif
