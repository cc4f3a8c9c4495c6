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
        _pegboard_words 'definitions validate help --help --version' "$cur"
        return
    fi
    case ${COMP_WORDS[1]} in
    definitions) _pegboard_definitions "$cur" "$prev" ;;
    validate) _pegboard_validate "$cur" "$prev" ;;
    help) _pegboard_words 'definitions validate' "$cur" ;;
    esac
}

complete -F _pegboard pegboard
