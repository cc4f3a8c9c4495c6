# SPDX-License-Identifier: Apache-2.0
# Completion of pegboard(1) for bash.

_pegboard_words() {
    local IFS=$' \t\n'
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_pegboard_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_pegboard_validate() {
    local cur=$1 prev=$2

    case $prev in
    --draft) _pegboard_words '4 6 7 2019-09 2020-12 v1' "$cur" ;;
    --color) _pegboard_words 'auto always never' "$cur" ;;
    --max-bytes | --max-depth | --loop) ;;
    --ref) _pegboard_files "${cur##*=}" ;;
    *)
        if [[ $cur == -* ]]; then
            _pegboard_words '--quiet --json --jsonl --yaml --draft --assert-format
                --no-assert-format --ref --max-bytes --max-depth --color --benchmark --loop
                --help' "$cur"
        else
            _pegboard_files "$cur"
        fi
        ;;
    esac
}

_pegboard_definitions() {
    local cur=$1 prev=$2

    case $prev in
    --provider | -p)
        _pegboard_words 'neutral openai-chat openai-responses anthropic gemini' "$cur" ;;
    --color) _pegboard_words 'auto always never' "$cur" ;;
    --max-tools) ;;
    *)
        if [[ $cur == -* ]]; then
            _pegboard_words '--provider --strict --json-schema --losses --fail-on-loss --json
                --quiet --max-tools --color --help' "$cur"
        else
            _pegboard_files "$cur"
        fi
        ;;
    esac
}

_pegboard_turn_value() {
    case $2 in
    --to) _pegboard_words 'json yaml' "$1" ;;
    --kinds) _pegboard_words 'system user assistant reasoning call result other' "$1" ;;
    --color) _pegboard_words 'auto always never' "$1" ;;
    --last | --max-bytes) ;;
    *) return 1 ;;
    esac
}

_pegboard_turn_show() {
    if _pegboard_turn_value "$1" "$2"; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--kinds --last --full --json --bytes --max-bytes --color --help' "$1"
    else
        _pegboard_files "$1"
    fi
}

_pegboard_turn_convert() {
    if _pegboard_turn_value "$1" "$2"; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--to --pretty --omit-data --output --bytes --max-bytes --color --help' "$1"
    else
        _pegboard_files "$1"
    fi
}

_pegboard_turn_validate() {
    if _pegboard_turn_value "$1" "$2"; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--strict --quiet --json --bytes --max-bytes --color --help' "$1"
    else
        _pegboard_files "$1"
    fi
}

_pegboard_turn() {
    if ((COMP_CWORD == 2)); then
        _pegboard_words 'show convert validate --help' "$1"
        return
    fi
    case ${COMP_WORDS[2]} in
    show) _pegboard_turn_show "$1" "$2" ;;
    convert) _pegboard_turn_convert "$1" "$2" ;;
    validate) _pegboard_turn_validate "$1" "$2" ;;
    esac
}

# The value of the option at COMP_WORDS[i], into `value`; i moves to its last word. Readline splits
# at = and at the colons of an address.
_pegboard_take_value() {
    [[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))
    value=${COMP_WORDS[++i]}
    while [[ ${COMP_WORDS[i + 1]} == : ]]; do
        value+=:${COMP_WORDS[i + 2]}
        ((i += 2))
    done
}

# Names from the gateway that the words so far lead to, quickly and silently.
_pegboard_names() {
    local -a where=()
    local i word value

    for ((i = 2; i < COMP_CWORD - 1; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        --registry | --token | --tls-ca | --tls-cert | --tls-key)
            _pegboard_take_value
            where+=("$word" "$value") ;;
        --tls) where+=("$word") ;;
        esac
    done
    timeout 1 "${COMP_WORDS[0]}" "$@" --names "${where[@]}" 2>/dev/null
}

# The operands before the cursor, options and their values left out.
_pegboard_operands() {
    local i word value

    for ((i = 2; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        --args)
            [[ ${COMP_WORDS[1]} == call ]] && _pegboard_take_value ;;
        --timeout | --idempotency-key | --answer | --meta | --registry | --token | --tls-ca | --tls-cert | \
            --tls-key | --color)
            _pegboard_take_value ;;
        -*) ;;
        *) printf '%s\n' "$word" ;;
        esac
    done
}

# A toolset, then one of its tools.
_pegboard_tool() {
    local -a before

    mapfile -t before < <(_pegboard_operands)
    case ${#before[@]} in
    0) _pegboard_words "$(_pegboard_names list)" "$1" ;;
    1) _pegboard_words "$(_pegboard_names get "${before[0]}")" "$1" ;;
    esac
}

_pegboard_remote_value() {
    case $2 in
    --color) _pegboard_words 'auto always never' "$1" ;;
    --token | --tls-ca | --tls-cert | --tls-key) _pegboard_files "$1" ;;
    --registry | --tag | --limit | --interval | --drain-time | --timeout | --idempotency-key | --answer | --meta | --run-id | --tool-call-id | --principal) ;;
    *) return 1 ;;
    esac
}

_pegboard_call() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $2 == --args ]]; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--args --stream --json --raw --timeout --idempotency-key --answer --meta
            --registry --token --tls --tls-ca --tls-cert --tls-key --color --help' "$1"
    else
        _pegboard_tool "$1"
    fi
}

_pegboard_generate() {
    case $2 in
    --out) _pegboard_files "$1" ;;
    --lang) _pegboard_words 'c python ts' "$1" ;;
    --service | --name) ;;
    --toolset) _pegboard_words "$(_pegboard_names list)" "$1" ;;
    *)
        if _pegboard_remote_value "$1" "$2"; then
            return
        elif [[ $1 == -* ]]; then
            _pegboard_words '--out --lang --client --provider --flat --toolset --service --name --raw
                --raw-numbers --quiet --registry --token --tls --tls-ca --tls-cert --tls-key
                --help' "$1"
        else
            _pegboard_files "$1"
        fi
        ;;
    esac
}

_pegboard_get() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--json --names --registry --token --tls --tls-ca --tls-cert --tls-key
            --color --help' "$1"
    else
        _pegboard_tool "$1"
    fi
}

_pegboard_list() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--tag --names --json --registry --token --tls --tls-ca --tls-cert --tls-key
            --color --help' "$1"
    else
        return
    fi
}

_pegboard_chat() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $2 == --model || $2 == --url || $2 == --key-env || $2 == --system ]]; then
        return
    elif [[ $2 == --vendor ]]; then
        _pegboard_words 'openai-chat openai-responses anthropic gemini' "$1"
    elif [[ $2 == --toolset ]]; then
        _pegboard_words "$(_pegboard_names list)" "$1"
    elif [[ $1 == -* ]]; then
        _pegboard_words '--model --url --vendor --key-env --script --system --resume --yes --toolset
            --registry --token --tls --tls-ca --tls-cert --tls-key --color --help' "$1"
    else
        _pegboard_files "$1"
    fi
}

_pegboard_mcp_config() {
    if [[ $2 == --url || $2 == --registry ]]; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--url --registry --help' "$1"
    elif ((COMP_CWORD == 3)); then
        _pegboard_words 'claude-code claude-desktop codex cursor vscode windsurf zed' "$1"
    else
        _pegboard_files "$1"
    fi
}

_pegboard_mcp() {
    if ((COMP_CWORD > 2)) && [[ ${COMP_WORDS[2]} == config ]]; then
        _pegboard_mcp_config "$1" "$2"
    elif _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $2 == --concurrency || $2 == --drain-time ]]; then
        return
    elif [[ $2 == --toolset ]]; then
        _pegboard_words "$(_pegboard_names list)" "$1"
    elif [[ $1 == -* ]]; then
        _pegboard_words '--concurrency --drain-time --no-watch --toolset --registry --token --tls
            --tls-ca --tls-cert --tls-key --help' "$1"
    else
        _pegboard_files "$1"
    fi
}

_pegboard_provide() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $2 == --concurrency || $2 == --queue || $2 == --drain-time || $2 == --toolset ||
        $2 == --direct || $2 == --otlp-endpoint || $2 == --otlp-sample ]]; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--concurrency --queue --drain-time --check --no-watch --mcp --toolset --direct --otlp-endpoint --otlp-sample --quiet --registry
            --token --tls --tls-ca --tls-cert --tls-key --help' "$1"
    else
        _pegboard_files "$1"
    fi
}

_pegboard_search() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--limit --tag --json --registry --token --tls --tls-ca --tls-cert --tls-key
            --color --help' "$1"
    else
        return
    fi
}

_pegboard_serve() {
    case $2 in
    --store) _pegboard_words 'sqlite mongo memory' "$1" ;;
    --log-level) _pegboard_words 'info warn error' "$1" ;;
    --token-file | --tls-cert | --tls-key | --tls-client-ca | --redis-ca | --redis-cert | --redis-key | \
        --log-file | --data-dir)
        _pegboard_files "$1" ;;
    --addr | --name | --ping-interval | --missed-ping-threshold | --result-mapping-ttl | \
        --drain-time | --lease | --keepalive | --max-held | --max-payload | --max-connections | --max-queue | --threads | \
        --search-language | --admin-names | --mcp-hosts | --mcp-search-above | --mcp-authorization-server | --cors-origin | --goa-generation | \
        --admin-addr | --redis | --otlp-endpoint | --otlp-sample | --mongo | --mongo-database | --mongo-collection) ;;
    *)
        _pegboard_words '--addr --name --store --mongo --mongo-database --mongo-collection --data-dir
            --ping-interval --missed-ping-threshold
            --result-mapping-ttl --drain-time --lease --keepalive --max-held --max-payload
            --max-connections --max-queue --threads
            --search-language --mcp-hosts --mcp-search-above --mcp-authorization-server
            --cors-origin --no-console --goa-generation
            --token-file --tls-cert --tls-key --tls-client-ca --admin-names --insecure
            --admin-addr --redis --redis-ca --redis-cert --redis-key --log-file --otlp-endpoint --otlp-sample --log-level --help' "$1"
        ;;
    esac
}

_pegboard_status() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--once --interval --json --registry --token --tls --tls-ca --tls-cert
            --tls-key --color --help' "$1"
    else
        return
    fi
}

_pegboard_calls() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $2 == --toolset ]]; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--toolset --idempotency-key --run-id --tool-call-id --principal --json --registry --token --tls
            --tls-ca --tls-cert --tls-key --color --help' "$1"
    else
        return
    fi
}

_pegboard_cluster() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--json --registry --token --tls --tls-ca --tls-cert --tls-key --color
            --help' "$1"
    else
        return
    fi
}

_pegboard_drain() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--drain-time --wait --registry --token --tls --tls-ca --tls-cert --tls-key
            --help' "$1"
    else
        return
    fi
}

_pegboard_token_new() {
    if [[ $2 == --token-file || $2 == --out ]]; then
        _pegboard_files "$1"
    else
        _pegboard_words '--token-file --out --admin --help' "$1"
    fi
}

_pegboard_token_list() {
    if [[ $2 == --token-file ]]; then
        _pegboard_files "$1"
    else
        _pegboard_words '--token-file --json --help' "$1"
    fi
}

_pegboard_token_revoke() {
    if [[ $2 == --token-file ]]; then
        _pegboard_files "$1"
    elif [[ $2 != --hash ]]; then
        _pegboard_words '--token-file --hash --help' "$1"
    fi
}

_pegboard_token() {
    if ((COMP_CWORD == 2)); then
        _pegboard_words 'new list revoke --help' "$1"
        return
    fi
    case ${COMP_WORDS[2]} in
    new) _pegboard_token_new "$1" "$2" ;;
    list) _pegboard_token_list "$1" "$2" ;;
    revoke) _pegboard_token_revoke "$1" "$2" ;;
    esac
}

_pegboard_unregister() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--operator --registry --token --tls --tls-ca --tls-cert --tls-key --help' "$1"
    else
        _pegboard_words "$(_pegboard_names list)" "$1"
    fi
}

_pegboard_watch() {
    if _pegboard_remote_value "$1" "$2"; then
        return
    elif [[ $1 == -* ]]; then
        _pegboard_words '--changes --tag --json --registry --token --tls --tls-ca --tls-cert
            --tls-key --color --help' "$1"
    else
        return
    fi
}

_pegboard() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

    COMPREPLY=()
    # Readline splits --draft=7 into three words.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD == 1)); then
        _pegboard_words 'call calls chat cluster definitions drain generate get list mcp provide search serve status token turn unregister
            validate watch help --help --version' "$cur"
        return
    fi
    case ${COMP_WORDS[1]} in
    call) _pegboard_call "$cur" "$prev" ;;
    calls) _pegboard_calls "$cur" "$prev" ;;
    cluster) _pegboard_cluster "$cur" "$prev" ;;
    definitions) _pegboard_definitions "$cur" "$prev" ;;
    drain) _pegboard_drain "$cur" "$prev" ;;
    generate) _pegboard_generate "$cur" "$prev" ;;
    get) _pegboard_get "$cur" "$prev" ;;
    list) _pegboard_list "$cur" "$prev" ;;
    chat) _pegboard_chat "$cur" "$prev" ;;
    mcp) _pegboard_mcp "$cur" "$prev" ;;
    provide) _pegboard_provide "$cur" "$prev" ;;
    search) _pegboard_search "$cur" "$prev" ;;
    serve) _pegboard_serve "$cur" "$prev" ;;
    status) _pegboard_status "$cur" "$prev" ;;
    token) _pegboard_token "$cur" "$prev" ;;
    turn) _pegboard_turn "$cur" "$prev" ;;
    unregister) _pegboard_unregister "$cur" "$prev" ;;
    validate) _pegboard_validate "$cur" "$prev" ;;
    watch) _pegboard_watch "$cur" "$prev" ;;
    help)
        _pegboard_words 'call calls chat cluster definitions drain generate get list mcp provide search serve status token turn unregister
            validate watch' "$cur" ;;
    esac
}

complete -F _pegboard pegboard
