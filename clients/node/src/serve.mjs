// SPDX-License-Identifier: Apache-2.0

import { Link } from "./link.mjs";
import { Provider } from "./provider.mjs";

const SIGNALS = ["SIGTERM", "SIGINT"];

/** For programs that have their own way to stop: serve() waits, drain() ends it. */
export function makeProvider(toolset, tools, options = {}) {
  const { description = "", version = "", tags = [] } = options;
  const names = tools.map((tool) => tool.name);
  if (!tools.length) throw new TypeError("there is no tool to offer");
  const twice = names.filter((name, i) => names.indexOf(name) !== i);
  if (twice.length) throw new TypeError(`two tools have the same name: ${twice.join(", ")}`);
  const registration = { name: toolset, description, version, tags, tools: tools.map((tool) => tool.message()) };
  return new Provider(new Link(options), registration, tools, options);
}

/** Offers tools until SIGTERM or SIGINT; then it finishes what runs, for drainMs at most. */
export async function serve(toolset, tools, options = {}) {
  const provider = makeProvider(toolset, tools, options);
  const stop = () => provider.drain(options.drainMs); // a second signal ends the process at once
  for (const name of SIGNALS) process.once(name, stop);
  options.signal?.addEventListener("abort", stop, { once: true });
  if (options.signal?.aborted) stop();
  try {
    await provider.serve();
  } finally {
    for (const name of SIGNALS) process.off(name, stop);
    options.signal?.removeEventListener("abort", stop);
  }
}
