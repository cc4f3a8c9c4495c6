/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_PYTHON_PYTHON_H
#define PEG_GENERATE_PYTHON_PYTHON_H

/*
 * Types of a toolset as Python 3.10, for one toolset, on the package of clients/python:
 *
 *   __init__.py   the folder is a package
 *   types.py      dataclasses, and how they are decoded and encoded
 *   provider.py   a method to write for each tool, and a provider of them
 *   client.py     a method to call for each tool
 *
 * Text from outside is in string literals and docstrings only, escaped: nothing of a declaration
 * becomes code.
 */

#include "generate/language.h"

extern const struct gen_language gen_python;

#endif
