import { parseBytes } from '../text/amounts.ts'
import { unseenLines, formatLogLine, splitLines } from '../text/log-lines.ts'
import { escapeJson } from '../text/printable.ts'
import { UsageError } from '../errors/errors.ts'
import type { Command, CommandOptions } from './command.ts'
import { requireSandbox } from './positionals.ts'

const DEFAULT_BYTES = 64 * 1024
const MAX_BYTES = 1024 * 1024
/** Interval of requests with `--follow`. */
const POLL_MS = 1_000

function parseBytesOption(options: CommandOptions): number {
  const text = options.value('bytes')
  const bytes = text === undefined ? DEFAULT_BYTES : parseBytes(text)
  if (bytes === undefined || bytes === 0 || bytes > MAX_BYTES)
    throw new UsageError('Option "--bytes" must be a size such as 64K, up to 1M')
  return bytes
}

/** Shows the log of a sandbox. */
export const logs: Command = {
  help: `Usage: sbx-stdio logs NAME [--follow] [--bytes SIZE] [--json]

Prints the end of a sandbox's log: starts, stops, sessions, and hosts that its network policy blocked. With --json, as
JSON lines.

  --follow             keep printing new lines
  --bytes SIZE         how much of the end to print (default: 64K)
`,
  options: { follow: 'flag', bytes: 'value' },
  parse: (options) => {
    const sandbox = requireSandbox(options)
    const path = `/logs/${sandbox}?bytes=${parseBytesOption(options)}`
    const isFollowing = options.has('follow')
    return {
      sandbox,
      run: async ({ api, io, isJson }) => {
        let seen: readonly string[] = []
        for (;;) {
          const lines = splitLines(await api.readText(path))
          for (const line of unseenLines(seen, lines))
            io.print(`${isJson ? escapeJson(line) : formatLogLine(line)}\n`)
          seen = lines
          if (!isFollowing) return
          await io.wait(POLL_MS)
        }
      },
    }
  },
}
