/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_CLEANUP_H
#define PEGBOARD_CLEANUP_H

/*
 * Owners that free what they own when their scope ends, for gcc and clang:
 *
 *   PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
 *   PEG_CLEANUP(peg_freep) char *text = NULL;
 *
 *   status = peg_json_parse(text, NULL, &doc, &error);
 *   if (status)
 *       return status;
 *
 * The name is that of the function that frees or unreferences, with a p. Initialise the variable:
 * its scope may end before it gets a value. Set it to NULL where you hand ownership on.
 * A peg_tool_list is a value and takes PEG_CLEANUP(peg_tool_list_free).
 */

#include "pegboard/artifact.h"
#include "pegboard/bag.h"
#include "pegboard/cancel.h"
#include "pegboard/client.h"
#include "pegboard/clock.h"
#include "pegboard/ctx.h"
#include "pegboard/definitions.h"
#include "pegboard/engine.h"
#include "pegboard/gate.h"
#include "pegboard/gateway.h"
#include "pegboard/json.h"
#include "pegboard/manifest.h"
#include "pegboard/media.h"
#include "pegboard/pool.h"
#include "pegboard/provider.h"
#include "pegboard/reader.h"
#include "pegboard/record.h"
#include "pegboard/registry.h"
#include "pegboard/runner.h"
#include "pegboard/schema.h"
#include "pegboard/script.h"
#include "pegboard/spool.h"
#include "pegboard/step.h"
#include "pegboard/storage.h"
#include "pegboard/tool.h"
#include "pegboard/turn.h"
#include "pegboard/turn_store.h"
#include "pegboard/typed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For text that a function of this library handed over. */
static inline void peg_freep(void *pointer_to_pointer)
{
    peg_free(*(void **)pointer_to_pointer);
}

PEG_DEFINE_CLEANUP(peg_arena, peg_arena_free)
PEG_DEFINE_CLEANUP(peg_artifact, peg_artifact_unref)
PEG_DEFINE_CLEANUP(peg_bag, peg_bag_unref)
PEG_DEFINE_CLEANUP(peg_cancel, peg_cancel_unref)
PEG_DEFINE_CLEANUP(peg_client, peg_client_unref)
PEG_DEFINE_CLEANUP(peg_toolset_list, peg_toolset_list_free)
PEG_DEFINE_CLEANUP(peg_toolset, peg_toolset_unref)
PEG_DEFINE_CLEANUP(peg_search_result, peg_search_result_free)
PEG_DEFINE_CLEANUP(peg_remote_result, peg_remote_result_free)
PEG_DEFINE_CLEANUP(peg_watch, peg_watch_free)
PEG_DEFINE_CLEANUP(peg_node_list, peg_node_list_free)
PEG_DEFINE_CLEANUP(peg_node_status, peg_node_status_free)
PEG_DEFINE_CLEANUP(peg_clock, peg_clock_manual_free)
PEG_DEFINE_CLEANUP(peg_ctx, peg_ctx_unref)
PEG_DEFINE_CLEANUP(peg_definition_losses, peg_definition_losses_free)
PEG_DEFINE_CLEANUP(peg_encoder, peg_encoder_free)
PEG_DEFINE_CLEANUP(peg_model, peg_model_unref)
PEG_DEFINE_CLEANUP(peg_gate, peg_gate_unref)
PEG_DEFINE_CLEANUP(peg_gateway, peg_gateway_free)
PEG_DEFINE_CLEANUP(peg_json_doc, peg_json_doc_free)
PEG_DEFINE_CLEANUP(peg_json_builder, peg_json_builder_free)
PEG_DEFINE_CLEANUP(peg_json_path, peg_json_path_free)
PEG_DEFINE_CLEANUP(peg_manifest, peg_manifest_free)
PEG_DEFINE_CLEANUP(peg_media, peg_media_unref)
PEG_DEFINE_CLEANUP(peg_pool, peg_pool_unref)
PEG_DEFINE_CLEANUP(peg_provider, peg_provider_free)
PEG_DEFINE_CLEANUP(peg_reader, peg_reader_unref)
PEG_DEFINE_CLEANUP(peg_record, peg_record_unref)
PEG_DEFINE_CLEANUP(peg_registry, peg_registry_unref)
PEG_DEFINE_CLEANUP(peg_runner, peg_runner_unref)
PEG_DEFINE_CLEANUP(peg_schema_docs, peg_schema_docs_free)
PEG_DEFINE_CLEANUP(peg_schema, peg_schema_unref)
PEG_DEFINE_CLEANUP(peg_checker, peg_checker_free)
PEG_DEFINE_CLEANUP(peg_report, peg_report_free)
PEG_DEFINE_CLEANUP(peg_schema_cache, peg_schema_cache_free)
PEG_DEFINE_CLEANUP(peg_script, peg_script_unref)
PEG_DEFINE_CLEANUP(peg_spool_store, peg_spool_store_unref)
PEG_DEFINE_CLEANUP(peg_stepper, peg_stepper_unref)
PEG_DEFINE_CLEANUP(peg_memory_storage, peg_memory_storage_free)
PEG_DEFINE_CLEANUP(peg_tool, peg_tool_unref)
PEG_DEFINE_CLEANUP(peg_block, peg_block_unref)
PEG_DEFINE_CLEANUP(peg_turn, peg_turn_free)
PEG_DEFINE_CLEANUP(peg_turn_store, peg_turn_store_unref)

#ifdef __cplusplus
}
#endif
#endif
