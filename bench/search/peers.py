# SPDX-License-Identifier: Apache-2.0
"""BM25 by bm25s, for measure.py: run by the Python of a venv that has it.

  peers.py DATA TOKENS

TOKENS is what `search-bench tokens DATA` printed: a line for each tool, then one for each question. Prints a JSON object:
figures with the tokens of bm25s (its English stop words, and stems), and with ours.
"""

import json
import math
import sys
from pathlib import Path

import bm25s
import Stemmer


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def figures(tools, questions, tool_tokens, question_tokens):
    retriever = bm25s.BM25()
    retriever.index(tool_tokens, show_progress=False)
    found, scores = retriever.retrieve(question_tokens, k=10, show_progress=False)
    ranks = []
    for question, places, values in zip(questions, found, scores):
        names = [tools[place]["name"] if value > 0 else None for place, value in zip(places, values)]
        ranks.append(names.index(question["tool"]) if question["tool"] in names else 10)
    n = len(ranks) / 100
    return {"recall_1": sum(r < 1 for r in ranks) / n, "recall_5": sum(r < 5 for r in ranks) / n,
            "recall_10": sum(r < 10 for r in ranks) / n,
            "ndcg_10": sum(1 / math.log2(r + 2) for r in ranks if r < 10) / n}


def own_tokens(texts):
    return bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)


def main():
    data, tokens = Path(sys.argv[1]), Path(sys.argv[2]).read_text().splitlines()
    tools, questions = read_lines(data / "tools.jsonl"), read_lines(data / "queries.jsonl")
    own = figures(tools, questions, own_tokens([f"{tool['name']} {tool['description']}" for tool in tools]),
                  own_tokens([question["query"] for question in questions]))
    numbers = {word: i for i, word in enumerate(sorted({word for line in tokens for word in line.split()}))}
    lists = [[numbers[word] for word in line.split()] for line in tokens]
    tokenized = [bm25s.tokenization.Tokenized(ids=part, vocab=numbers)
                 for part in (lists[:len(tools)], lists[len(tools):])]
    print(json.dumps({"own": own, "ours": figures(tools, questions, *tokenized), "bm25s": bm25s.__version__}))


if __name__ == "__main__":
    main()
