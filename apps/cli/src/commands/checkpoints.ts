import { formatAge, formatJson, formatTable } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireSandbox } from './positionals.ts'
import { decodeVersions, type Version } from './responses.ts'

function describeNotes({ isNewest, isFuzzy, unreadable }: Version): string {
  const notes = [
    ...(isNewest ? ['newest'] : []),
    ...(isFuzzy ? ['programs ran while it was saved'] : []),
    ...(unreadable > 0 ? [`${unreadable} files could not be read`] : []),
  ]
  return notes.length === 0 ? '-' : notes.join(', ')
}

/** Lists the saved versions of a sandbox. */
export const checkpoints: Command = {
  help: `Usage: sbx-stdio checkpoints SANDBOX [--json]
       sbx-stdio checkpoints SANDBOX --delete VERSION
       sbx-stdio checkpoints SANDBOX --rebuild

Lists the saved versions of a sandbox's files, newest first: number, name, kind and age. Checkpoints are kept
until you delete them, automatic versions are replaced by newer ones.

  --delete VERSION     delete the version with this name or number
  --rebuild            add versions that are in the store and not in the list, as after the server was restored
                       from a backup
`,
  options: { delete: 'value', rebuild: 'flag' },
  parse: (options) => {
    const sandbox = requireSandbox(options)
    const path = `/api/sandboxes/${sandbox}/checkpoints`
    const deleted = options.value('delete')
    return {
      sandbox,
      run: async ({ api, io, isJson, nowMs }) => {
        if (deleted !== undefined) {
          await api.request('DELETE', `${path}/${encodeURIComponent(deleted)}`)
          return
        }
        const response = options.has('rebuild')
          ? await api.request('POST', `${path}/rebuild`)
          : await api.request('GET', path)
        if (isJson) {
          io.print(formatJson(response))
          return
        }
        const versions = decodeVersions(response)
        if (versions.length === 0) {
          io.info(`no version of ${sandbox} is saved yet`)
          return
        }
        const rows = versions.map((version) => [
          String(version.version),
          version.name ?? '-',
          version.kind,
          formatAge(version.savedMs, nowMs),
          describeNotes(version),
        ])
        io.print(formatTable(['VERSION', 'NAME', 'KIND', 'AGE', 'NOTES'], rows, io.columns))
      },
    }
  },
}
