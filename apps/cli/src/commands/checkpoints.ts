import { formatAge, formatJson, formatTable } from '../text/table.ts'
import { UsageError } from '../errors/errors.ts'
import { formatBytes } from '../text/amounts.ts'
import type { Command, CommandOptions } from './command.ts'
import { requireSandbox } from './positionals.ts'
import { decodeVersions, type Version, type VersionList } from './responses.ts'

function describeNotes({ isNewest, isFuzzy, unreadable }: Version): string {
  const notes = [
    ...(isNewest ? ['newest'] : []),
    ...(isFuzzy ? ['programs ran while it was saved'] : []),
    ...(unreadable > 0 ? [`${unreadable} files could not be read`] : []),
  ]
  return notes.length === 0 ? '-' : notes.join(', ')
}

/** The options that set which versions are kept, as the body of a request. */
function readRetention(options: CommandOptions): Readonly<Record<string, number | null>> | undefined {
  const [automatic, days] = [options.value('keep-automatic'), options.value('keep-days')]
  if (automatic === undefined && days === undefined) return undefined
  const whole = (name: string, text: string): number => {
    if (!/^[1-9][0-9]{0,3}$/.test(text)) throw new UsageError(`Option "--${name}" must be a whole number`)
    return Number(text)
  }
  return {
    ...(automatic === undefined ? {} : { automaticVersions: whole('keep-automatic', automatic) }),
    ...(days === undefined ? {} : { checkpointDays: days === 'forever' ? null : whole('keep-days', days) }),
  }
}

function describeRetention({ versions, retention, storedBytes }: VersionList): string | undefined {
  // The provider keeps them itself, as long as it wants.
  if (storedBytes === 0 && versions.length > 0) return undefined
  const { automaticVersions, checkpointDays } = retention
  const checkpoints =
    checkpointDays === null ? 'checkpoints until you delete them' : `checkpoints for ${checkpointDays} days`
  return `${formatBytes(storedBytes)}B stored; kept are ${automaticVersions} automatic versions, and ${checkpoints}`
}

/** Lists the saved versions of a sandbox. */
export const checkpoints: Command = {
  help: `Usage: sbx-stdio checkpoints SANDBOX [--json]
       sbx-stdio checkpoints SANDBOX --delete VERSION
       sbx-stdio checkpoints SANDBOX --keep-automatic NUMBER --keep-days DAYS
       sbx-stdio checkpoints SANDBOX --rebuild

Lists the saved versions of a sandbox's files, newest first: number, name, kind and age. Checkpoints are kept
until you delete them, automatic versions are replaced by newer ones.

  --delete VERSION     delete the version with this name or number
  --keep-automatic NUMBER
                       keep this many automatic versions of this sandbox
  --keep-days DAYS     delete checkpoints of this sandbox after this many days; "forever" keeps them
  --rebuild            add versions that are in the store and not in the list, as after the server was restored
                       from a backup
`,
  options: { delete: 'value', rebuild: 'flag', 'keep-automatic': 'value', 'keep-days': 'value' },
  parse: (options) => {
    const sandbox = requireSandbox(options)
    const path = `/api/sandboxes/${sandbox}/checkpoints`
    const deleted = options.value('delete')
    const retention = readRetention(options)
    return {
      sandbox,
      run: async ({ api, io, isJson, nowMs }) => {
        if (deleted !== undefined) {
          await api.request('DELETE', `${path}/${encodeURIComponent(deleted)}`)
          return
        }
        const response =
          retention !== undefined
            ? await api.request('PUT', `/api/sandboxes/${sandbox}/retention`, retention)
            : options.has('rebuild')
              ? await api.request('POST', `${path}/rebuild`)
              : await api.request('GET', path)
        if (isJson) {
          io.print(formatJson(response))
          return
        }
        const list = decodeVersions(response)
        const { versions } = list
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
        const kept = describeRetention(list)
        if (kept !== undefined) io.info(kept)
      },
    }
  },
}
