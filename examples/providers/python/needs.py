# SPDX-License-Identifier: Apache-2.0
"""Imported first: says what the programs here need that is not there, and how to get it."""

import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("apt-get install python3-grpcio python3-protobuf (for /usr/bin/python3), or "
            f"{sys.executable} -m pip install grpcio protobuf")
MESSAGES = (f"cd {HERE} && protoc -I ../../../proto --python_out=. pegboard/v1/registry.proto goapb/goa.proto "
            "google/rpc/status.proto (protoc: apt-get install protobuf-compiler)")

for module, remedy in (("grpc", PACKAGES), ("google.protobuf", PACKAGES), ("pegboard.v1.registry_pb2", MESSAGES),
                       ("goapb.goa_pb2", MESSAGES)):
    try:
        importlib.import_module(module)
    except ImportError as error:
        sys.exit(f"{os.path.basename(sys.argv[0])} needs {module} ({error}):\n  {remedy}")
