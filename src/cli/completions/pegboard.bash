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
        _pegboard_words 'definitions turn validate help --help --version' "$cur"
        return
    fi
    case ${COMP_WORDS[1]} in
    definitions) _pegboard_definitions "$cur" "$prev" ;;
    turn) _pegboard_turn "$cur" "$prev" ;;
    validate) _pegboard_validate "$cur" "$prev" ;;
    help) _pegboard_words 'definitions turn validate' "$cur" ;;
    esac
}

complete -F _pegboard pegboard
