// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package peers names what is built from grpc-go, so that go.mod has it and all that it needs.
package peers

import (
	_ "google.golang.org/grpc/interop/client"
	_ "google.golang.org/grpc/interop/server"
)
