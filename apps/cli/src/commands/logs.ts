import { parseBytes } from '../text/amounts.ts'
import { newLines, formatLogLine, splitLines } from '../text/log-lines.ts'
import { escapeJson } from '../text/printable.ts'
import { UsageError } from '../options/words.ts'
import type { Command, CommandOptions } from './command.ts'
import { readSandbox } from './positionals.ts'

const DEFAULT_BYTES = 64 * 1024
const MAX_BYTES = 1024 * 1024
/** How often a log is looked at while it is followed. */
const POLL_MS = 1_000

function readBytes(words: CommandOptions): number {
  const text = words.one('bytes')
  const bytes = text === undefined ? DEFAULT_BYTES : parseBytes(text)
  if (bytes === undefined || bytes === 0 || bytes > MAX_BYTES)
    throw new UsageError('Option "--bytes" takes a size such as 64K, up to 1M')
  return bytes
}

/** Shows what happened in a sandbox: starts, stops, blocked hosts. */
export const logs: Command = {
  help: `Usage: sbx-stdio logs NAME [--follow] [--bytes SIZE] [--json]

Prints the end of a sandbox's log: starts and stops, sessions, and hosts that its network policy blocked. With --json
they are JSON lines, as the server has them.

  --follow             go on with what is added
  --bytes SIZE         how much of the end (default: 64K)
`,
  options: { follow: 'flag', bytes: 'once' },
  read: (words) => {
    const sandbox = readSandbox(words)
    const path = `/logs/${sandbox}?bytes=${readBytes(words)}`
    const isFollowing = words.has('follow')
    return {
      sandbox,
      run: async ({ api, io, isJson }) => {
        let seen: readonly string[] = []
        for (;;) {
          const lines = splitLines(await api.readText(path))
          for (const line of newLines(seen, lines))
            io.print(`${isJson ? escapeJson(line) : formatLogLine(line)}\n`)
          seen = lines
          if (!isFollowing) return
          await io.wait(POLL_MS)
        }
      },
    }
  },
}
