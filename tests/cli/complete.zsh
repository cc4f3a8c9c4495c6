# SPDX-License-Identifier: Apache-2.0
#
# What zsh would complete a line with, a match in each line of the output. Functions of completion
# work only while somebody presses a key, so another zsh gets a terminal, and its Tab is pressed.
#
#   zsh -f complete.zsh FOLDER_OF_COMPLETIONS LINE
emulate -R zsh

# ---- in the zsh with the terminal -------------------------------------------------------

if [[ $1 == --inner ]]; then
    PROMPT= RPROMPT=
    fpath=($2 $fpath)
    autoload -Uz compinit
    compinit -D -u
    bindkey '^I' complete-word
    zstyle ':completion:*' insert-tab false
    mark() { print -rn -- $'\0' }
    compprefuncs=(mark)
    comppostfuncs=(mark exit)

    # The matches go to the terminal instead of into the line. Those that only collect (-O, -A, -D)
    # or say nothing (-x) are left alone.
    compadd() {
        local -a hits
        local option

        for option in "$@"; do
            [[ $option == (-|--) ]] && break
            [[ $option == -*[OADx]* ]] && { builtin compadd "$@"; return }
        done
        builtin compadd -A hits "$@"
        ((${#hits})) && print -rl -- $hits
        builtin compadd "$@"
    }
    print -rn -- $'\0'
    return
fi

# ---- at the keyboard ------------------------------------------------------------------

zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner "stty -echo; source ${(q)0:A} --inner ${(q)1}"
zpty -r inner text $'*\0' # it is ready
zpty -w -n inner "$2"$'\t'
zpty -r inner text $'*\0' # completion begins
zpty -r inner text $'*\0' # and has ended
zpty -d inner
print -r -- ${${text%$'\0'}//$'\r'/}
