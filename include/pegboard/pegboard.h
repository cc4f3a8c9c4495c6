/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_H
#define PEGBOARD_H

/*
 * Everything, for programs that would rather not choose:
 *
 *   peg_tool      a named function with a JSON Schema for its arguments     tool.h, call.h
 *   peg_registry  the tools a model may call                                registry.h
 *   peg_call_run  look up, check, run, record                               run.h, record.h
 *   peg_artifact  a result too large for a prompt                           artifact.h, spool.h
 *   peg_media     an image, sound, video or document                        media.h
 *   peg_gate      a question to a person in the middle of a handler         gate.h
 *   peg_turn      a conversation: text, tool calls and their results        turn.h
 *   peg_runner    alternates model and tools, safely                        runner.h, dispatch.h
 *   peg_bag       what a turn carries beside the conversation               bag.h, tool_config.h
 *   peg_turn_read a turn from text, and to text                             turn_file.h
 *   peg_turn_store where turns are kept between runs                        turn_store.h
 *   peg_arena     structs for JSON, with `pegboard generate`                typed.h
 *   peg_script    an engine without a model                                 script.h
 *
 * What needs another library is apart: models behind HTTP and other requests, engine.h
 * and http.h (libpegboard-engine); tools of other programs, client.h, provider.h and trace.h
 * (libpegboard-remote); a gateway for them, gateway.h and store.h (libpegboard-gateway); MCP,
 * mcp.h (libpegboard-mcp).
 */

#include <pegboard/artifact.h>
#include <pegboard/bag.h>
#include <pegboard/call.h>
#include <pegboard/command.h>
#include <pegboard/ctx.h>
#include <pegboard/definitions.h>
#include <pegboard/dispatch.h>
#include <pegboard/envelope.h>
#include <pegboard/gate.h>
#include <pegboard/json.h>
#include <pegboard/log.h>
#include <pegboard/media.h>
#include <pegboard/pool.h>
#include <pegboard/registry.h>
#include <pegboard/run.h>
#include <pegboard/runner.h>
#include <pegboard/schema.h>
#include <pegboard/script.h>
#include <pegboard/sqlite.h>
#include <pegboard/step.h>
#include <pegboard/storage.h>
#include <pegboard/tool_config.h>
#include <pegboard/turn.h>
#include <pegboard/turn_file.h>
#include <pegboard/turn_store.h>
#include <pegboard/typed.h>
#include <pegboard/yaml.h>

#endif
