import { UsageError } from '../errors/errors.ts'
import { formatBytes } from '../text/amounts.ts'
import { printable } from '../text/printable.ts'
import { formatJson, formatTable } from '../text/table.ts'
import type { Command } from './command.ts'
import { decodeVersionDiff } from './responses.ts'
import { parseVersion } from './version-argument.ts'

function formatSize(bytes: number | null): string {
  return bytes === null ? '-' : formatBytes(bytes)
}

/** Lists what differs between two saved versions. */
export const diff: Command = {
  help: `Usage: sbx-stdio diff SANDBOX@VERSION [SANDBOX@VERSION] [--json]

Lists files and folders that differ between two saved versions of a sandbox, with their sizes. Without a second
version, the first is compared with the newest. The sandbox is not started.

  sbx-stdio diff dev@before-upgrade dev@after-upgrade
`,
  options: {},
  parse: ({ positionals }) => {
    const [first = '', second, extra] = positionals
    const from = parseVersion(first)
    const to = second === undefined ? undefined : parseVersion(second)
    if (extra !== undefined || (to !== undefined && to.sandbox !== from.sandbox))
      throw new UsageError('Give one or two versions of one sandbox', 'sbx-stdio checkpoints SANDBOX')
    const { sandbox } = from
    return {
      sandbox,
      hintCommand: `checkpoints ${sandbox}`,
      run: async ({ api, io, isJson }) => {
        const query = to === undefined ? '' : `?to=${to.version}`
        const path = `/api/sandboxes/${sandbox}/checkpoints/${from.version}/diff${query}`
        const response = await api.request('GET', path)
        if (isJson) {
          io.print(formatJson(response))
          return
        }
        const { changes, isComplete } = decodeVersionDiff(response)
        if (changes.length === 0) {
          io.info('the versions have the same files')
          return
        }
        const rows = changes.map(({ change, beforeBytes, afterBytes, kind, path: changed }) => [
          change,
          formatSize(beforeBytes),
          formatSize(afterBytes),
          printable(kind === 'folder' ? `${changed}/` : changed),
        ])
        io.print(formatTable(['CHANGE', 'BEFORE', 'AFTER', 'PATH'], rows, io.columns))
        if (!isComplete) io.info(`only the first ${changes.length} differences are shown`)
      },
    }
  },
}
