# SPDX-License-Identifier: Apache-2.0
# Completion of pegboard(1) for fish.

set -l commands definitions validate help
set -l definitions '__fish_seen_subcommand_from definitions; and not __fish_seen_subcommand_from help'
set -l validate '__fish_seen_subcommand_from validate; and not __fish_seen_subcommand_from help'

complete -c pegboard -n "not __fish_seen_subcommand_from $commands" -f -a definitions -d 'Show what a model would be sent for some tools'
complete -c pegboard -n "not __fish_seen_subcommand_from $commands" -f -a validate -d 'Check JSON, YAML or JSON lines against a JSON Schema'
complete -c pegboard -n "not __fish_seen_subcommand_from $commands" -f -a help -d 'Explain a command'
complete -c pegboard -n "not __fish_seen_subcommand_from $commands" -f -l version -d 'Tell the version'
complete -c pegboard -n '__fish_seen_subcommand_from help' -f -a 'definitions validate'
complete -c pegboard -s h -l help -d 'Show the help'

complete -c pegboard -n $definitions -x -s p -l provider -a 'neutral openai-chat openai-responses anthropic gemini' -d 'Whose form'
complete -c pegboard -n $definitions -l strict -d 'OpenAI: rewrite schemas for strict mode'
complete -c pegboard -n $definitions -l json-schema -d 'Gemini: parametersJsonSchema instead of parameters'
complete -c pegboard -n $definitions -l losses -d 'Print the loss report instead of the tools'
complete -c pegboard -n $definitions -l fail-on-loss -d 'Exit with 1 if anything is lost'
complete -c pegboard -n $definitions -l json -d 'Print one JSON object with provider, tools and losses'
complete -c pegboard -n $definitions -s q -l quiet -d 'Print no loss report'
complete -c pegboard -n $definitions -x -l max-tools -d 'Take so many tools'
complete -c pegboard -n $definitions -x -l color -a 'auto always never' -d 'When to use colour'

complete -c pegboard -n $validate -s q -l quiet -d 'Print no verdicts, only set the exit status'
complete -c pegboard -n $validate -l json -d 'Print one JSON object a line for each instance'
complete -c pegboard -n $validate -l jsonl -d 'Read every FILE as JSON lines'
complete -c pegboard -n $validate -l yaml -d 'Read every FILE as YAML'
complete -c pegboard -n $validate -x -l draft -a '4 6 7 2019-09 2020-12 v1' -d 'Dialect of a schema without $schema'
complete -c pegboard -n $validate -l assert-format -d 'Check format'
complete -c pegboard -n $validate -l no-assert-format -d 'Never check format'
complete -c pegboard -n $validate -r -F -l ref -d 'A document that $ref may lead to'
complete -c pegboard -n $validate -x -l max-bytes -d 'Largest instance'
complete -c pegboard -n $validate -x -l max-depth -d 'Deepest nesting of an instance'
complete -c pegboard -n $validate -x -l color -a 'auto always never' -d 'When to use colour'
complete -c pegboard -n $validate -l benchmark -d 'Measure instead of reporting'
complete -c pegboard -n $validate -x -l loop -d 'Benchmark with N rounds over all instances'
