// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package peers names h2spec, so that go.mod has it and all that it needs.
package peers

import (
	_ "github.com/summerwind/h2spec/cmd/h2spec"
)
