/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_LIMITS_H
#define PEG_BASE_LIMITS_H

/*
 * Every limit of the library, with its reason. Exceeding one is an error that
 * names it. What an options struct can change has its default here.
 */

#include "base/limits/bus.h"
#include "base/limits/store.h"

enum {
    /* A whole model response is below 1 MiB; artifacts and turns may be larger. */
    PEG_LIMIT_JSON_BYTES = 64 << 20,
    /* Lengths and offsets of a document are 32 bits wide. */
    PEG_LIMIT_JSON_BYTES_MAX = 0x7FFFFFFF,
    /* Real documents stay below 30. A frame of the parser's stack is 16 bytes. */
    PEG_LIMIT_JSON_DEPTH = 256,
    PEG_LIMIT_JSON_DEPTH_MAX = 4096,
    /* Exact arithmetic is quadratic in the digits: 1,000 of them cost microseconds. */
    PEG_LIMIT_NUMBER_DIGITS = 1000,
    PEG_LIMIT_NUMBER_EXPONENT = 10000,
    /* Written text: a canonical form or a YAML may be larger than the JSON it came from. */
    PEG_LIMIT_TEXT_BYTES = 256 << 20,

    /* Generous: the largest schemas in public stores are around 1 MiB. */
    PEG_LIMIT_SCHEMA_BYTES = 1 << 20,
    PEG_LIMIT_SCHEMA_DEPTH = 128,
    PEG_LIMIT_SCHEMA_SUBSCHEMAS = 20000,
    PEG_LIMIT_PATTERN_BYTES = 4096,
    /* Bytes of compiled pattern: bounds {n,m} blow-ups such as (a{1000}){1000}. */
    PEG_LIMIT_PATTERN_COMPILED = 256 << 10,
    PEG_LIMIT_PATTERN_NESTING = 100,

    /* A level of the checker takes some 300 bytes of stack. */
    PEG_LIMIT_CHECK_DEPTH = 1000,
    PEG_LIMIT_CHECK_DEPTH_MAX = 10000,
    /* Some tens of milliseconds, whatever the schema; honest checks take steps by their values. */
    PEG_LIMIT_CHECK_STEPS = 200000,
    PEG_LIMIT_CHECK_STEPS_PER_VALUE = 64,
    /* Per start position; what honest patterns need is below 1,000. */
    PEG_LIMIT_MATCH = 10000,

    /* Filling defaults in: schemas that describe one place, levels (some 400 bytes of stack
     * each), and values that come from defaults. */
    PEG_LIMIT_FILL_TOGETHER = 32,
    PEG_LIMIT_FILL_DEPTH = 256,
    PEG_LIMIT_FILL_VALUES = 100000,

    PEG_LIMIT_PATH_BYTES = 4096,
    PEG_LIMIT_PATH_NESTING = 32,
    PEG_LIMIT_PATH_NODES = 10000,
    PEG_LIMIT_PATH_STEPS = 1000000,

    /* Real documents have dozens. */
    PEG_LIMIT_YAML_ANCHORS = 10000,
    /* Real documents have none or one; libyaml takes quadratic time. */
    PEG_LIMIT_YAML_TAG_DIRECTIVES = 100,

    /* Names of toolsets and tools; the longest a provider takes is 128. */
    PEG_LIMIT_NAME_BYTES = 256,
    PEG_LIMIT_DESCRIPTION_BYTES = 64 << 10,
    PEG_LIMIT_TAGS = 64,
    PEG_LIMIT_META_BYTES = 256 << 10,
    PEG_LIMIT_REGISTRY_TOOLS = 100000,
    PEG_LIMIT_TURN_BLOCKS = 100000,
    /* Arguments that nest deeper stand in a turn's file as text: around them are four levels, and
     * all of it must be read back within PEG_LIMIT_JSON_DEPTH. */
    PEG_LIMIT_TURN_ARGS_DEPTH = 200,

    /* Strings of one block; what is larger belongs into an artifact. */
    PEG_LIMIT_BLOCK_BYTES = 64 << 20,
    /* A call block's id is the key of its result, and keys of a spool store have 256 bytes. */
    PEG_LIMIT_BLOCK_ID_BYTES = 256,
    /* Some providers seal state into their call ids: some 400 bytes. */
    PEG_LIMIT_CALL_ID_BYTES = 1024,
    /* A call id, and what makes it unique within a turn. */
    PEG_LIMIT_HANDLE_BYTES = 1024 + 64,
    /* The most that a provider takes in one request is 600. */
    PEG_LIMIT_BLOCK_MEDIA = 1000,
    /* A middleware takes some 700 bytes of our stack, and what it takes itself. */
    PEG_LIMIT_MIDDLEWARES = 64,
    /* Messages, thoughts and calls that one dispatch tells about, and bytes of those that are not
     * complete. */
    PEG_LIMIT_STREAMS = 100000,
    PEG_LIMIT_STREAM_BYTES = 64 << 20,
    /* A storage in memory, over all runs: two of the longest turns. It forgets nothing by itself,
     * so who keeps more than this wants a disk. */
    PEG_LIMIT_STORAGE_BLOCKS = 200000,
    PEG_LIMIT_STORAGE_RUNS = 10000,
    PEG_LIMIT_STORAGE_FILES = 10000,
    PEG_LIMIT_STORAGE_BYTES = 256 << 20,

    /* Defaults of peg_run_options and peg_dispatch_options; what each is for stands there. */
    PEG_LIMIT_TOOL_MS = 30000,
    PEG_LIMIT_RESULT_BYTES = 8 << 20,
    PEG_LIMIT_ARGS_BYTES = 4 << 20,
    PEG_LIMIT_ATTEMPTS = 10,
    /* Whatever retry_factor makes of it. */
    PEG_LIMIT_RETRY_MS = 600000,
    /* What a turn may ask for where the host set nothing: it may come from a file. */
    PEG_LIMIT_TURN_ITERATIONS = 1000,
    PEG_LIMIT_TURN_TIMEOUT_MS = 3600000,
    /* Calls made by handlers of calls: agents below agents are a few levels deep, and each may take
     * kilobytes of stack. */
    PEG_LIMIT_CALL_DEPTH = 64,
    PEG_LIMIT_ITERATIONS = 20,
    PEG_LIMIT_CALLS = 64,
    PEG_LIMIT_SERVER_DATA_BYTES = 1 << 20,
    /* The sentence of a failure goes into a prompt. */
    PEG_LIMIT_FAILURE_BYTES = 16 << 10,

    /* A handler that watches its token returns within this; one that does not is abandoned. */
    PEG_LIMIT_CANCEL_GRACE_MS = 1000,
    PEG_LIMIT_POOL_THREADS = 4,
    PEG_LIMIT_POOL_THREADS_MAX = 256,
    PEG_LIMIT_POOL_ABANDONED = 4,
    PEG_LIMIT_POOL_QUEUED = 1024,
    PEG_LIMIT_POOL_QUEUED_MAX = 1000000,
    /* The checker at its default depth takes 300 KiB of it; untouched pages cost nothing. */
    PEG_LIMIT_POOL_STACK_BYTES = 1 << 20,
    /* A handler may run calls of its own: with less, arguments that nest could end the process. */
    PEG_LIMIT_POOL_STACK_MIN = 512 << 10,
    /* Handlers that wait for calls of their own: each keeps a thread. Agents that call themselves
     * without an end stop here. */
    PEG_LIMIT_POOL_NESTED = 256,

    /* Commands: words and bytes of a command line or an environment, within what Linux takes. */
    PEG_LIMIT_COMMAND_ARGS = 4096,
    PEG_LIMIT_COMMAND_BYTES = 1 << 20,
    /* A word of a command line: Linux takes 128 KiB (MAX_ARG_STRLEN) with its NUL. */
    PEG_LIMIT_COMMAND_ARG_BYTES = (128 << 10) - 1,
    PEG_LIMIT_COMMAND_OUTPUT = 8 << 20,
    PEG_LIMIT_COMMAND_GRACE_MS = 2000,
    PEG_LIMIT_COMMAND_GRACE_MAX_MS = 600000,
    /* How long what a command started may hold its output when the command itself has exited. */
    PEG_LIMIT_COMMAND_DRAIN_MS = 200,
    /* How often a clock that cannot wake us is looked at. */
    PEG_LIMIT_COMMAND_STEP_MS = 10,
    /* `pegboard provide` looks at so many processes for what a command has left behind: more than
     * a machine has, unless somebody makes them on purpose. And so often, a millisecond apart: what
     * starts new ones faster than they are killed, or may not be killed, is left. */
    PEG_LIMIT_COMMAND_PROCESSES = 1 << 17,
    PEG_LIMIT_COMMAND_KILL_ROUNDS = 500,
    /* Address space of a command that has a limit: 1 TiB, more than anybody has. */
    PEG_LIMIT_COMMAND_MEMORY_MIB = 1 << 20,

    /* A manifest of commands: what a gateway takes of one toolset. */
    PEG_LIMIT_MANIFEST_BYTES = 4 << 20,

    /* An artifact that is read whole: eight times what a result may have by default. */
    PEG_LIMIT_ARTIFACT_BYTES = 64 << 20,
    PEG_LIMIT_SPOOL_KEY_BYTES = 256,
    PEG_LIMIT_SPOOL_BYTES = 256 << 20,
    /* What a query may answer: more would not fit a prompt either. */
    PEG_LIMIT_QUERY_BYTES = 1 << 20,
    /* Values in one answer: each takes at least five bytes of it. */
    PEG_LIMIT_QUERY_VALUES = 200000,
    /* Visits of one path: some 64 MiB of small values, half a second. */
    PEG_LIMIT_QUERY_STEPS = 20000000,
    /* CPU time of one query: searching 64 MiB takes one or two seconds. */
    PEG_LIMIT_QUERY_MS = 5000,
    /* More would not fit a prompt: every query of a kind lists all of its artifacts. */
    PEG_LIMIT_FORGED_ARTIFACTS = 10000,
    PEG_LIMIT_FORGED_BYTES = 4 << 20, /* of the schema of one of them */
    PEG_LIMIT_MEDIA_NOTES = 64,
    /* A name to show, cut without an error; file systems stop at 255. */
    PEG_LIMIT_FILENAME_BYTES = 256,
    /* Artifacts of fewer bytes are shown whole: a handle and two queries cost more. */
    PEG_LIMIT_INLINE_BELOW = 4096,
    /* Names and notes of one media together: as much as a result may have by default. */
    PEG_LIMIT_MEDIA_TEXT_BYTES = 8 << 20,
    /* An empty value takes some 200 bytes too. */
    PEG_LIMIT_SPOOL_KEYS = 1000000,
    /* Of artifact kinds: real ones have one base and a dozen queries. */
    PEG_LIMIT_KIND_DEPTH = 16,
    PEG_LIMIT_KIND_QUERIES = 64,
    PEG_LIMIT_KIND_NAME_BYTES = 64,
    PEG_LIMIT_TOKEN_ENCODINGS = 64,

    /* Of a Markdown document: 32 bytes each, some 64 bytes of text on average. */
    PEG_LIMIT_MARKDOWN_BLOCKS = 1000000,
    /* Quotes, lists and items inside each other, and links inside links; people stop at five. */
    PEG_LIMIT_MARKDOWN_DEPTH = 32,
    /* Links and emphasis are looked for within this many bytes of a paragraph; a longer one is
     * read in pieces. */
    PEG_LIMIT_MARKDOWN_INLINE_BYTES = 256 << 10,
    /* A line of dashes further down closes no front matter. */
    PEG_LIMIT_FRONTMATTER_LINES = 200,
    /* Longer front matter is shown as it is, not parsed. */
    PEG_LIMIT_FRONTMATTER_BYTES = 64 << 10,
    /* Code that a list of code blocks shows; blocks beyond are listed without theirs. */
    PEG_LIMIT_MARKDOWN_CODE_BYTES = 256 << 10,

    /* Bags: a key of ours, one that a file brings, how many there are, and how large and deep their
     * values may be, so that a turn with them can be read back within the limits of a document. */
    PEG_LIMIT_KEY_BYTES = 128,
    PEG_LIMIT_FOREIGN_KEY_BYTES = 1024,
    PEG_LIMIT_BAG_KEYS = 1000,
    PEG_LIMIT_BAG_BYTES = 64 << 20,
    PEG_LIMIT_BAG_DEPTH = 128,

    /* One image or document inside a request: what OpenAI and Gemini take at most. */
    PEG_LIMIT_REQUEST_MEDIA_BYTES = 20 << 20,

    /* Of runs, turns, dispatches and gates: a UUID has 36, hosts put their own there. */
    PEG_LIMIT_ID_BYTES = 256,
    /* A question to a person; what it is about is the payload. */
    PEG_LIMIT_GATE_REASON_BYTES = 16 << 10,

    /* People step through a few sessions; each takes some 300 bytes. */
    PEG_LIMIT_STEP_SESSIONS = 10000,

    /* What a model says at once: the longest answers have a few hundred KiB. */
    PEG_LIMIT_REPLY_BYTES = 64 << 20,
    /* As many as a turn may have blocks. */
    PEG_LIMIT_REPLY_PARTS = 100000,
    /* Of these, calls and items that OpenAI's fragments name: looked for one after the other. */
    PEG_LIMIT_REPLY_SLOTS = 1024,
    /* An error answer nests some five deep. */
    PEG_LIMIT_REPLY_DEPTH = 64,

    /* SQLite: how long to wait for another connection's lock; writers hold it for milliseconds. */
    PEG_LIMIT_SQLITE_BUSY_MS = 5000,
    /* The SQLite tool. A query of a model; the longest that people write have some 10 kB. */
    PEG_LIMIT_SQL_BYTES = 100000,
    /* Tokens of a query with its CTEs written out where they are used, as SQLite does it: 200,000
     * take it some 0.2 seconds and 100 MB, and it cannot be interrupted meanwhile. */
    PEG_LIMIT_SQL_SYMBOLS = 200000,
    PEG_LIMIT_SQL_NAMES = 1000,  /* CTEs and windows of one query */
    PEG_LIMIT_SQL_PARAMS = 1000, /* bound to one query */
    /* Tables and views of a database: a call looks at all of them. */
    PEG_LIMIT_SQLITE_OBJECTS = 10000,
    /* One value while a query computes, twice the largest cell: no function takes 200 ms for it,
     * in which SQLite does not look at the clock. */
    PEG_LIMIT_SQLITE_VALUE_BYTES = 2 << 20,
    /* What SQLite may hold more than before while a query runs, for the whole process. */
    PEG_LIMIT_SQLITE_MEMORY = 256 << 20,
    /* What LIKE and GLOB look for, and trim() removes: they take its length times the text's. */
    PEG_LIMIT_SQLITE_PATTERN_BYTES = 200,
    /* That product for LIKE and GLOB: some 0.1 seconds. */
    PEG_LIMIT_SQLITE_PATTERN_STEPS = 32 << 20,
    PEG_LIMIT_SQLITE_FUNCTION_ARGS = 32, /* json_extract() reads a document for each */
    /* Steps of a query between two looks at the clock and at the memory. */
    PEG_LIMIT_SQLITE_STEPS = 50,
    /* Defaults of peg_sqlite_def, and the most that a definition can ask for. */
    PEG_LIMIT_SQLITE_ROWS = 100,
    PEG_LIMIT_SQLITE_ROWS_MAX = 100000,
    PEG_LIMIT_SQLITE_COLUMNS = 64,
    PEG_LIMIT_SQLITE_COLUMNS_MAX = 2000, /* SQLite's own */
    PEG_LIMIT_SQLITE_CELL_BYTES = 2000,
    PEG_LIMIT_SQLITE_CELL_BYTES_MAX = 1 << 20,
    PEG_LIMIT_SQLITE_RESULT_BYTES = 256 << 10,
    PEG_LIMIT_SQLITE_RESULT_BYTES_MAX = 8 << 20,
    PEG_LIMIT_SQLITE_MS = 5000,
    /* A name of a column; those of long expressions are cut. */
    PEG_LIMIT_SQLITE_COLUMN_BYTES = 256,
    /* CREATE statements in a description, which goes into every prompt. */
    PEG_LIMIT_SQLITE_SCHEMA_BYTES = 24 << 10,

    /* Tools in one request; OpenAI's own limit, and what models still choose well from. */
    PEG_LIMIT_OPENAI_TOOLS = 128,
    PEG_LIMIT_OTHER_TOOLS = 512,
    /* All of them: [A-Za-z0-9_-]{1,64}. */
    PEG_LIMIT_PROVIDER_NAME_BYTES = 64,
    /* Listed in one loss report. */
    PEG_LIMIT_LOSSES = 10000,
    /* Schemas inside schemas, where they are rewritten for a provider: some 2 KiB of stack each. */
    PEG_LIMIT_REWRITE_DEPTH = 64,
    /* Where $ref is written out in place: schemas that apply together, references inside each
     * other, references and bytes of one tool. */
    PEG_LIMIT_INLINED_TOGETHER = 16,
    PEG_LIMIT_INLINED_DEPTH = 32,
    PEG_LIMIT_INLINED_REFS = 1000,
    PEG_LIMIT_INLINED_BYTES = 1 << 20,
    /* What is moved into a description: of one keyword, and in all. */
    PEG_LIMIT_DESCRIBED_BYTES = 512,
    PEG_LIMIT_DESCRIBED_BYTES_ALL = 4096,
    /* OpenAI's own, of one strict schema. */
    PEG_LIMIT_STRICT_PROPERTIES = 5000,
    PEG_LIMIT_STRICT_DEPTH = 10,
    PEG_LIMIT_STRICT_ENUM = 1000,
    PEG_LIMIT_STRICT_BYTES = 120000,

    /* Turns that one list tells of: each takes some 150 bytes meanwhile. */
    PEG_LIMIT_STORE_TURNS = 1000000,
    /* A turn store in memory forgets nothing by itself; turns that share blocks share their
     * memory, but each block counts each time. */
    PEG_LIMIT_MEMORY_TURNS = 10000,
    PEG_LIMIT_STORE_BLOCKS = 1000000,
    /* Blocks, and bytes of them, whose digest a store in SQLite remembers: ten long turns. */
    PEG_LIMIT_STORE_CACHE = 1 << 17,
    PEG_LIMIT_STORE_CACHE_BYTES = 64 << 20,
    /* Bytes of artifacts and media of one turn in files. */
    PEG_LIMIT_STORE_BYTES = 1 << 30,

    /* Lines of an HTTP answer before its body; curl alone would take more. */
    PEG_LIMIT_HTTP_HEADER_BYTES = 256 << 10,
    /* Handles with open connections that an engine keeps for its next requests. */
    PEG_LIMIT_HTTP_IDLE = 8,
    /* Seconds after which a kept connection is not used for a request that must not be repeated. */
    PEG_LIMIT_HTTP_ONCE_AGE_S = 4,
    /* Ids of events that a stream is taken up at: they travel as a header. */
    PEG_LIMIT_SSE_ID_BYTES = 1024,
    /* How often a request polls for what cannot wake it. */
    PEG_LIMIT_HTTP_STEP_MS = 250,
    /* How long a server may take to close a stream that has told its end. */
    PEG_LIMIT_HTTP_DRAIN_MS = 200,
    /* Retry-After is cut at a week. */
    PEG_LIMIT_RETRY_AFTER_MS = 7 * 24 * 3600 * 1000,
    /* What an answer that is an error may say; the rest is not read. */
    PEG_LIMIT_ENGINE_ERROR_BYTES = 64 << 10,

    /* A turn with as many answers would have too many blocks. */
    PEG_LIMIT_SCRIPT_STEPS = 100000,

    /* Loops are threads; more of them than cores gain nothing. */
    PEG_LIMIT_NET_LOOPS = 64,
    /* What the kernel lets wait before we accept; it cuts it at its own limit (4,096). */
    PEG_LIMIT_NET_BACKLOG = 1024,
    /* Connections of one listener: each takes some 2 KiB of ours, with TLS 16, and more of the
     * kernel's. */
    PEG_LIMIT_NET_CONNECTIONS = 20000,
    /* Bytes that wait for a socket. A writer that stops at the first byte that waits holds one
     * scratch buffer of 64 KiB, and TLS adds to that. */
    PEG_LIMIT_NET_QUEUE_BYTES = 1 << 20,
    /* Connecting and the TLS handshake; what grpc-go allows for both. */
    PEG_LIMIT_NET_OPEN_MS = 20000,
    /* For the last bytes after a close. */
    PEG_LIMIT_NET_LINGER_MS = 5000,
    /* Bytes that the peer may send after a close: twice what may be on its way when it closes
     * (PEG_LIMIT_GRPC_SESSION_WINDOW). */
    PEG_LIMIT_NET_LINGER_BYTES = 2 << 20,
    /* Addresses of one name. */
    PEG_LIMIT_NET_ADDRESSES = 64,

    /* Bytes of the wire that were not read: what one read of a socket may bring. */
    PEG_LIMIT_TLS_UNREAD_BYTES = 64 << 10,
    /* Bytes for the wire that were not sent: a full queue of a stream, and records around it. */
    PEG_LIMIT_TLS_WIRE_BYTES = 2 << 20,
    /* What a peer may send before the handshake is done, in all and as its first message (which
     * OpenSSL makes room for as soon as it is announced): chains of certificates take 10 KiB. */
    PEG_LIMIT_TLS_HANDSHAKE_BYTES = 64 << 10,
    PEG_LIMIT_TLS_HELLO_BYTES = 16 << 10,
    /* The system's roots take some 220 KiB. */
    PEG_LIMIT_TLS_FILE_BYTES = 4 << 20,
    /* SPIFFE's limit for a name. */
    PEG_LIMIT_TLS_NAME_BYTES = 2048,

    /* The head of a request of HTTP/1.1: tokens, cookies and trace state fit, as in HTTP/2. */
    PEG_LIMIT_NET_HTTP_HEAD_BYTES = 16 << 10,
    /* Extensions of chunks and trailers of one body, which are skipped. */
    PEG_LIMIT_NET_HTTP_CHUNK_EXTRA_BYTES = 16 << 10,
    /* The body of a request, unless its route has another limit: what gRPC takes as a message. */
    PEG_LIMIT_NET_HTTP_BODY_BYTES = 4 << 20,
    /* A body that is answered before it has come whole, and is read to its end all the same so that
     * the connection can be used again. */
    PEG_LIMIT_NET_HTTP_DISCARD_BYTES = 64 << 10,
    /* Bytes of an answer that wait for one connection of HTTP/1.1, as on a stream of gRPC. */
    PEG_LIMIT_NET_HTTP_SEND_BYTES = 8 << 20,
    /* Requests that a server has open at once, on all connections: 20,000 connections of HTTP/1.1,
     * or 20 of HTTP/2 with all the streams that they may have. */
    PEG_LIMIT_NET_HTTP_REQUESTS = 20000,
    /* For a head to come whole: the slowest lines need a second. */
    PEG_LIMIT_NET_HTTP_HEAD_MS = 10000,
    /* For a body to come before its rate counts, and bytes per second from then on: a slow phone
     * sends ten times as many. */
    PEG_LIMIT_NET_HTTP_BODY_MS = 10000,
    PEG_LIMIT_NET_HTTP_BODY_RATE = 1 << 10,
    /* Between two requests. Clients keep connections for a minute at least; Go's for 90 s. */
    PEG_LIMIT_NET_HTTP_IDLE_MS = 100000,
    /* For the client to take what was sent to it. */
    PEG_LIMIT_NET_HTTP_SEND_MS = 30000,

    /* What every gRPC library takes by default. */
    PEG_LIMIT_GRPC_MESSAGE_BYTES = 4 << 20,
    /* grpc-go and grpc-js take 16 KiB and 8 KiB; tokens and trace state fit. */
    PEG_LIMIT_GRPC_HEADER_BYTES = 16 << 10,
    /* A block that is larger is read to its end and its call refused, up to so many times as much:
     * beyond that, its sender loses the connection. All that a program of ours may add
     * (PEG_LIMIT_GRPC_METADATA_BYTES) is less. */
    PEG_LIMIT_GRPC_HEADER_TIMES = 8,
    /* Metadata that a program of ours may add to a call. */
    PEG_LIMIT_GRPC_METADATA_BYTES = 64 << 10,
    /* Words of a status; what is longer belongs into its details. */
    PEG_LIMIT_GRPC_STATUS_BYTES = 4096,
    /* Words and details of a status as they are sent, percent-encoded and in base 64: clients of
     * gRPC's core refuse some of the blocks of headers above 8 KiB, and other fields need room. */
    PEG_LIMIT_GRPC_STATUS_WIRE_BYTES = 6 << 10,
    /* Calls at once on one connection: some 3 KiB each while they wait. */
    PEG_LIMIT_GRPC_STREAMS = 1000,
    /* What may be on its way to one stream, and to one connection: 1 Gbit/s over 2 ms and 8 ms. */
    PEG_LIMIT_GRPC_STREAM_WINDOW = 256 << 10,
    PEG_LIMIT_GRPC_SESSION_WINDOW = 1 << 20,
    /* Messages that have begun or wait on one connection: sixteen of the largest. */
    PEG_LIMIT_GRPC_HELD_BYTES = 64 << 20,
    /* What waits to be sent on one stream. */
    PEG_LIMIT_GRPC_SEND_BYTES = 8 << 20,
    /* What all connections of a server hold together: messages that have begun or wait, answers,
     * headers, streams. Above that the connection that holds most is cut. */
    PEG_LIMIT_GRPC_NODE_HELD_BYTES = 256 << 20,
    /* One part in so many of it is for connections that have not authenticated, if clients have
     * to: those only read headers, and ask for health and reflection. */
    PEG_LIMIT_GRPC_UNAUTHENTICATED_PART = 8,
    /* And such a connection ends after so long. */
    PEG_LIMIT_GRPC_UNAUTHENTICATED_MS = 60000,
    /* A message that is not whole after so long, or an answer of which the client has taken
     * nothing, ends its call. 4 MiB in that time are 280 kbit/s. */
    PEG_LIMIT_GRPC_STALL_MS = 120000,
    /* What a connection holds is counted for all in steps: the counter is one for all loops. */
    PEG_LIMIT_GRPC_COUNT_STEP_BYTES = 4 << 10,
    /* Streams that a client resets (CVE-2023-44487): at once, and per second. A reset costs us
     * some 3 us, so this is below 1 % of a core. */
    PEG_LIMIT_GRPC_RESET_BURST = 5000,
    PEG_LIMIT_GRPC_RESETS = 2000,
    /* Frames in a row that carry neither a call nor a message: each costs some 100 ns. */
    PEG_LIMIT_GRPC_IDLE_FRAMES = 10000,
    /* And the bytes of such, known to anybody or not. */
    PEG_LIMIT_GRPC_IDLE_BYTES = 1 << 20,
    /* As many again after so long: pings keep a silent connection alive for weeks. */
    PEG_LIMIT_GRPC_IDLE_MS = 60000,
    /* Bytes of streams that begin after the final GOAWAY: twice what may be on its way when it is
     * sent (PEG_LIMIT_GRPC_SESSION_WINDOW). */
    PEG_LIMIT_GRPC_UNWANTED_BYTES = 2 << 20,
    /* SETTINGS of one connection, beside one for each KiB that was sent on it: each costs some 10
     * ns for every stream that is open. */
    PEG_LIMIT_GRPC_SETTINGS = 100,
    /* Frames on one connection, in PEG_LIMIT_GRPC_IDLE_MS, that make us reset or refuse a stream
     * ("made you reset"). */
    PEG_LIMIT_GRPC_INVALID_FRAMES = 1000,
    /* CONTINUATION frames of one block of headers: each can hold 16 KiB. */
    PEG_LIMIT_GRPC_CONTINUATIONS = 32,
    /* Answers of HTTP/2 itself that wait for the peer to read: some 2,000 pings. */
    PEG_LIMIT_GRPC_CONTROL_BYTES = 32 << 10,
    /* Blocks of headers of status 1xx before an answer: who sends any sends one or two. */
    PEG_LIMIT_GRPC_INTERIM = 16,
    /* A silent connection is pinged after two hours in gRPC core; a tool's provider is missed
     * sooner. */
    PEG_LIMIT_GRPC_KEEPALIVE_MS = 60000,
    PEG_LIMIT_GRPC_KEEPALIVE_TIMEOUT_MS = 20000,
    /* Clients that ping more often get two strikes, then GOAWAY. grpc-go keeps 10 s. */
    PEG_LIMIT_GRPC_PING_MS = 8000,
    PEG_LIMIT_GRPC_PING_STRIKES = 2,
    PEG_LIMIT_GRPC_AGE_GRACE_MS = 30000,
    PEG_LIMIT_GRPC_PREFACE_MS = 10000,
    /* Ended calls whose memory a loop keeps for the next ones. */
    PEG_LIMIT_GRPC_SPARE_CALLS = 256,
    /* Bytes of all of them, and of those of a channel. */
    PEG_LIMIT_GRPC_SPARE_LIST_BYTES = 1 << 20,
    /* Of a buffer that a stream keeps between two messages. */
    PEG_LIMIT_GRPC_READER_SPARE_BYTES = 16 << 10,
    /* Calls of a client that wait for a connection or a stream. */
    PEG_LIMIT_GRPC_WAITING_CALLS = 10000,
    PEG_LIMIT_GRPC_RESOLVE_MS = 30000,
    /* Messages inside messages: what every protobuf library takes. Some 1.5 KiB of stack each. */
    PEG_LIMIT_GRPC_MESSAGE_DEPTH = 100,
    /* Memory of one message: a peer may write two bytes where a C struct takes hundreds. */
    PEG_LIMIT_GRPC_UNPACKED_BYTES = 64 << 20,
    /* What a client keeps of a request until an answer begins, so that a call which a server has
     * not seen can be sent again. */
    PEG_LIMIT_GRPC_KEPT_BYTES = 64 << 10,
    /* Connections of one channel: addresses times connections to each. */
    PEG_LIMIT_GRPC_CHANNEL_CONNECTIONS = 1024,
    /* Between two attempts to connect: the first time, and at most. What the protocol says. */
    PEG_LIMIT_GRPC_BACKOFF_MS = 1000,
    PEG_LIMIT_GRPC_BACKOFF_MAX_MS = 120000,
    /* A channel without calls closes its connections after so long; what gRPC core does. */
    PEG_LIMIT_GRPC_CHANNEL_IDLE_MS = 30 * 60 * 1000,
    /* Memory of an ended call that is kept for the next one. */
    PEG_LIMIT_GRPC_SPARE_BYTES = 64 << 10,
    /* Descriptors in one program, for reflection: what every file imports is listed per file, so
     * this bounds the square. Google's own APIs have some hundred files in one service. */
    PEG_LIMIT_GRPC_FILES = 1000,
    PEG_LIMIT_GRPC_SYMBOLS = 1000000,
    PEG_LIMIT_GRPC_SYMBOL_BYTES = 4096,
    /* Messages declared inside messages; protoc stops at 32 too. */
    PEG_LIMIT_GRPC_NESTING = 32,
    /* Services whose health is reported; the protocol has a hundred in a list of all. */
    PEG_LIMIT_GRPC_HEALTH_SERVICES = 1000,
    PEG_LIMIT_GRPC_HEALTH_LISTED = 100,
    /* A request for health: the name of a service. It is open to all, as is reflection, whose
     * requests name a symbol or a file (PEG_LIMIT_GRPC_SYMBOL_BYTES). */
    PEG_LIMIT_GRPC_HEALTH_BYTES = 1 << 10,
    PEG_LIMIT_GRPC_REFLECTION_BYTES = 8 << 10,

    /* ---- gateway ---- */
    /* A call that names no time of its own, as with the reference gateway; and at most: a day. */
    PEG_LIMIT_GATEWAY_CALL_MS = 30000,
    PEG_LIMIT_GATEWAY_MAX_CALL_MS = 24 * 60 * 60 * 1000,
    /* Leases of providers and loops, renewed each third: the time a provider has to come back. */
    PEG_LIMIT_GATEWAY_LEASE_MS = 10000,
    /* A canceled call that runs may end by itself for so long. */
    PEG_LIMIT_GATEWAY_GRACE_MS = 5000,
    /* A node that cannot end a call tells its callers so long after the deadline. */
    PEG_LIMIT_GATEWAY_SETTLE_MS = 60000,
    /* A call with an identity whose caller lost its connection runs on for so long, to be asked. */
    PEG_LIMIT_GATEWAY_REATTACH_MS = 10000,
    /* The outcome of a call with an identity is kept after its deadline, for who asks again. */
    PEG_LIMIT_GATEWAY_KEEP_MS = 5 * 60 * 1000,
    /* Calls that one loop drives at once: some 1 KiB each, and their payloads. */
    PEG_LIMIT_GATEWAY_CALLS = 100000,
    /* Requests larger than the first have room of their own at the loop that drives them, the
     * second, until their calls end: 128 of the largest. Small ones are never refused for it. */
    PEG_LIMIT_GATEWAY_SMALL_REQUEST_BYTES = 16 << 10,
    PEG_LIMIT_GATEWAY_LARGE_REQUEST_BYTES = 256 << 20,
    /* Calls that wait for one provider, and bytes of their payloads. */
    PEG_LIMIT_GATEWAY_QUEUE = 10000,
    PEG_LIMIT_GATEWAY_QUEUE_BYTES = 64 << 20,
    /* What a call asks while it runs: bytes of a question and of its answer, questions in all (each
     * leaves two registers), and how much longer such a call has, for people. */
    PEG_LIMIT_GATEWAY_QUESTION_BYTES = 64 << 10,
    PEG_LIMIT_GATEWAY_QUESTIONS = 32,
    PEG_LIMIT_GATEWAY_ASK_MS = 10 * 60 * 1000,
    /* Times that one call may be sent to somebody else. */
    PEG_LIMIT_GATEWAY_ATTEMPTS = 8,
    /* Messages that outlive their call: so many calls of a loop are remembered for so long, for the
     * answers. Registers of others stay until their time is over. */
    PEG_LIMIT_GATEWAY_OUTSTANDING = 10000,
    PEG_LIMIT_GATEWAY_OUTSTANDING_MS = 60000,
    /* The heap in use is measured once in so long: that takes milliseconds. */
    PEG_LIMIT_GATEWAY_HEAP_MS = 10000,
    /* Loops with followers of one call that get what its tool outputs meanwhile. */
    PEG_LIMIT_GATEWAY_LISTENERS = 64,
    /* Providers of one loop. */
    PEG_LIMIT_GATEWAY_PROVIDERS = 10000,
    /* Calls that a provider says it is running when it comes back, and calls at once. */
    PEG_LIMIT_GATEWAY_CREDITS = 10000,
    /* Calls that the providers of one loop have or say that they have: those that a loop drives,
     * and as many whose coordinators are elsewhere. */
    PEG_LIMIT_GATEWAY_ASSIGNMENTS = 200000,
    /* A call that a provider has listed, and that neither registers nor a coordinator know of, is
     * forgotten after so long: coordinators ask each 5 s, and one that was halted for longer finds
     * its node's lease gone. */
    PEG_LIMIT_GATEWAY_REPORTED_MS = 60 * 1000,
    /* Payloads above are parsed and checked by workers: some 10 us of a loop's time. */
    PEG_LIMIT_GATEWAY_INLINE_BYTES = 8 << 10,
    /* What patterns may take of a loop in one check: 1 ms. */
    PEG_LIMIT_GATEWAY_PATTERN_STEPS = 200000,
    /* Arguments of a call: a frame must fit what stock clients take (4 MiB). */
    PEG_LIMIT_GATEWAY_PAYLOAD_BYTES = 2 << 20,
    /* Ids of others (run_id, tool_call_id), tags: what the reference takes. */
    PEG_LIMIT_GATEWAY_ID_BYTES = 256,
    /* Of one toolset or tool, or of one question. */
    PEG_LIMIT_GATEWAY_TAGS = 64,
    /* A result: what waits on one stream (PEG_LIMIT_GRPC_SEND_BYTES), in frames that let others
     * between them. */
    PEG_LIMIT_GATEWAY_RESULT_BYTES = 8 << 20,
    PEG_LIMIT_GATEWAY_CHUNK_BYTES = 64 << 10,

    /* The catalog of a gateway. A toolset is registered, and told of, in one message of 4 MiB:
     * bytes of its texts and schemas, so that there is room for what stands around them. */
    PEG_LIMIT_GATEWAY_TOOLSETS = 100000,
    PEG_LIMIT_GATEWAY_TOOLS = 10000,
    PEG_LIMIT_GATEWAY_TOOLSET_BYTES = 7 << 19,
    /* In characters, of toolsets and tools: what goa-ai takes. */
    PEG_LIMIT_GATEWAY_DESCRIPTION = 4096,
    /* Compiled schemas, over all toolsets: some 4,000 of them. Those that were not used for longest
     * are compiled again when they are needed, in some 15 us each. */
    PEG_LIMIT_GATEWAY_COMPILED_BYTES = 16 << 20,
    /* Names that are known, those of toolsets that were removed in the last day too. */
    PEG_LIMIT_GATEWAY_RECORDS = 200000,
    /* How long it is remembered that a toolset was removed: a node that was away for longer may
     * bring it back. */
    PEG_LIMIT_GATEWAY_TOMBSTONE_MS = 24 * 60 * 60 * 1000,
    PEG_LIMIT_GATEWAY_PURGE_MS = 60 * 60 * 1000,
    /* Characters of what is looked for; toolsets in one answer, and bytes of them, after which a
     * page ends early: one more fits into what stock clients take (4 MiB). */
    PEG_LIMIT_GATEWAY_QUERY = 1024,
    /* Different words of a query that are ranked, stop words aside: as many as fit, nearly. And
     * words that no toolset has, for which similar ones are looked for: each takes some 20 us. */
    PEG_LIMIT_GATEWAY_QUERY_WORDS = 128,
    PEG_LIMIT_GATEWAY_QUERY_WIDENED = 8,
    PEG_LIMIT_GATEWAY_PAGE = 1000,
    PEG_LIMIT_GATEWAY_PAGE_DEFAULT = 100,
    PEG_LIMIT_GATEWAY_PAGE_BYTES = 3 << 20,
    /* Streams of Watch on one loop, and changes that wait for the reader of one. */
    PEG_LIMIT_GATEWAY_WATCHERS = 1000,
    PEG_LIMIT_GATEWAY_WATCH_EVENTS = 1000,
    /* Texts of schemas, which equal ones share. */
    PEG_LIMIT_GATEWAY_SCHEMAS = 2000000,
    /* Providers of all nodes, some 160 bytes each on every loop. */
    PEG_LIMIT_GATEWAY_PRESENT = 100000,
    /* One that was silent for so long has left with its node. */
    PEG_LIMIT_GATEWAY_GONE_MS = 60 * 60 * 1000,
    /* How long the last pong of a toolset without providers is remembered. */
    PEG_LIMIT_GATEWAY_PRESENCE_MS = 24 * 60 * 60 * 1000,

    /* Providers. Handlers at once: threads, whose stacks cost address space and not much else. */
    PEG_LIMIT_REMOTE_CONCURRENCY = 256,
    /* Calls that one provider has at once, those that wait too: what a Hello may ask for. */
    PEG_LIMIT_REMOTE_CREDITS = 10000,
    /* Of those that run on the loop: they are over as soon as they have come. */
    PEG_LIMIT_REMOTE_INLINE_CREDITS = 1000,
    /* A frame of a result or a delta: what the protocol allows. */
    PEG_LIMIT_REMOTE_CHUNK_BYTES = 64 << 10,
    /* A result as JSON text: what the gateway takes. */
    PEG_LIMIT_REMOTE_RESULT_BYTES = 8 << 20,
    /* Deltas of one provider that wait to be sent, and those of one of its calls: one that talks
     * without end leaves room for the others. */
    PEG_LIMIT_REMOTE_DELTA_BYTES = 1 << 20,
    PEG_LIMIT_REMOTE_CALL_DELTA_BYTES = 512 << 10,
    PEG_LIMIT_REMOTE_STREAM_NAME_BYTES = 128,
    /* Events of the connection that wait while the host is busy with another one. */
    PEG_LIMIT_REMOTE_EVENTS = 256,
    /* Entries that a caller sends along. */
    PEG_LIMIT_REMOTE_METADATA = 256,
    /* Calls that were acknowledged last: one that comes again is not started again. */
    PEG_LIMIT_REMOTE_RECENT = 1024,
    /* Results that one provider has sent and keeps until their Acks, with what they are answers to:
     * it takes no new calls from a gateway that lets more gather. Eight of the largest. What the
     * gateway has not let through yet is not of them: its credits are bound for that. */
    PEG_LIMIT_REMOTE_KEPT_BYTES = 64 << 20,
    /* So long it keeps one, while the stream on which it was sent holds: a gateway acknowledges
     * within milliseconds, or, if it cannot reach its registry, when it can. One that does not must
     * not keep a provider from taking calls for ever. */
    PEG_LIMIT_REMOTE_KEPT_MS = 10 * 60 * 1000,
    /* For Welcome, and for the end of a stream on which everything was said. */
    PEG_LIMIT_REMOTE_WELCOME_MS = 20000,
    PEG_LIMIT_REMOTE_CLOSE_MS = 2000,
    /* A provider without calls that leaves waits for the gateway's Drained, for a call may be on
     * its way to it; without that word so long. */
    PEG_LIMIT_REMOTE_QUIET_MS = 2000,
    PEG_LIMIT_REMOTE_DRAIN_MS = 30000,
    /* A gateway that starts again is back within a second or two; one that was away for longer is
     * found again soon. */
    PEG_LIMIT_REMOTE_BACKOFF_MS = 500,
    PEG_LIMIT_REMOTE_BACKOFF_MAX_MS = 5000,
    /* A connection without a word is asked whether it lives. */
    PEG_LIMIT_REMOTE_KEEPALIVE_MS = 20000,

    /* One holder of a quota has at most so many times what is free: alone three quarters of it, and
     * there is always something left for others to begin with. */
    PEG_LIMIT_QUOTA_SHARE = 3,
    /* Keys that holders are counted by, which are hashes; 8 KiB for a quota with shares. */
    PEG_LIMIT_QUOTA_KEYS = 1024,

    /* Words of one error of the gateway: what is wrong with a payload takes most. */
    PEG_LIMIT_GATEWAY_MESSAGE_BYTES = 8192,

    /* Registries of one client: each has a connection. */
    PEG_LIMIT_REMOTE_REGISTRIES = 64,
    /* What a gateway may answer with: a toolset of 10,000 tools, a page of 1,000 toolsets. */
    PEG_LIMIT_REMOTE_MESSAGE_BYTES = 32 << 20,
    /* A call with its arguments and metadata: one message of gRPC; gateways take no more. */
    PEG_LIMIT_REMOTE_REQUEST_BYTES = 4 << 20,
    /* Tools of one toolset that is registered: gateways take no more. */
    PEG_LIMIT_REMOTE_TOOLS = 10000,
    /* Messages of a stream that wait for a caller who is busy; then the gateway waits. */
    PEG_LIMIT_REMOTE_QUEUE_BYTES = 1 << 20,
    /* Toolsets of one list, over all pages and registries: some 300 bytes each. */
    PEG_LIMIT_REMOTE_REPORTED = 100000,
    /* Tags that are asked for; what a toolset may have. */
    PEG_LIMIT_REMOTE_TAGS = 256,
    /* Toolsets that a client remembers, and fetches again at once in the background. */
    PEG_LIMIT_REMOTE_CACHED = 1024,
    PEG_LIMIT_REMOTE_REFRESHES = 16,
    /* After a fetch in the background that failed; what the reference waits. */
    PEG_LIMIT_REMOTE_REFRESH_COOLDOWN_MS = 10000,
    /* A message typed or piped into `pegboard chat`: some 200,000 tokens. */
    PEG_LIMIT_CHAT_LINE_BYTES = 1 << 20,
    /* Lines of `pegboard provide` that wait for a reader of its standard error. */
    PEG_LIMIT_REMOTE_LINES_BYTES = 1 << 20,
    /* A bearer token, and the file it is in: those of identity providers have some KiB. */
    PEG_LIMIT_REMOTE_TOKEN_BYTES = 8 << 10,
    /* Globs of one registry, include or exclude. */
    PEG_LIMIT_REMOTE_GLOBS = 1000,
    /* Trace context, all of it: baggage may have 8 KiB, says W3C. */
    PEG_LIMIT_REMOTE_TRACE_BYTES = 10 << 10,
    /* Of a token file: some 100 bytes each. */
    PEG_LIMIT_GATEWAY_TOKENS = 10000,
    PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES = 4 << 20,
    /* Toolsets that one loop counts for, gone ones too: some 450 bytes each. */
    PEG_LIMIT_GATEWAY_METERS = 20000,
    /* Toolsets whose latencies are in /metrics: some 2 KiB of text each. */
    PEG_LIMIT_GATEWAY_HISTOGRAMS = 1000,
    /* Toolsets of one principal that have series of their own in /metrics: 1.2 KiB of text each. */
    PEG_LIMIT_GATEWAY_OWN_SERIES = 1000,
    /* How long the text of /metrics is kept for all who ask. */
    PEG_LIMIT_GATEWAY_METRICS_MS = 1000,
    /* Its text: a thousand toolsets take some 5 MiB. */
    PEG_LIMIT_GATEWAY_METRICS_BYTES = 16 << 20,
    /* One line of the log, and what waits to be written. */
    PEG_LIMIT_GATEWAY_LOG_LINE_BYTES = 2048,
    PEG_LIMIT_GATEWAY_LOG_BYTES = 1 << 20,
    /* Entries of metadata of one call; with meta and trace context so many bytes. */
    PEG_LIMIT_GATEWAY_METADATA = 64,
    PEG_LIMIT_GATEWAY_METADATA_BYTES = 16 << 10,
    /* One frame to a provider: a payload, and what goes with it. */
    PEG_LIMIT_GATEWAY_FRAME_BYTES = 5 << 20,
    /* Results of one provider that have begun to come, in all. */
    PEG_LIMIT_GATEWAY_ASSEMBLED_BYTES = 64 << 20,
    /* And of all providers of one loop together, with those that workers have not read yet; a
     * principal with little has room above that. */
    PEG_LIMIT_GATEWAY_ALL_ASSEMBLED_BYTES = 256 << 20,
    /* Of a principal's results that workers have not read yet: above that its streams wait. */
    PEG_LIMIT_GATEWAY_OWN_READING_BYTES = 48 << 20,
};

#endif
