import { UsageError } from '../errors/errors.ts'
import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { SANDBOX_NAME } from './positionals.ts'
import { decodeVersion } from './responses.ts'

const CHECKPOINT_NAME = /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Saves the files of a sandbox and keeps them. */
export const checkpoint: Command = {
  help: `Usage: sbx-stdio checkpoint SANDBOX [NAME] [--json]

Saves the files of a sandbox as a version that is kept until you delete it. Running programs are stopped for a
moment, so that the version shows all files at one point in time.

  sbx-stdio checkpoint dev before-upgrade
  sbx-stdio restore dev@before-upgrade
`,
  options: {},
  parse: ({ positionals }) => {
    const [sandbox, name, extra] = positionals
    if (sandbox === undefined || extra !== undefined)
      throw new UsageError('Give a sandbox and at most one name', 'sbx-stdio list')
    if (!SANDBOX_NAME.test(sandbox))
      throw new UsageError('Invalid sandbox name: use lower-case letters, digits and hyphens (max 63)')
    if (name !== undefined && !CHECKPOINT_NAME.test(name))
      throw new UsageError(
        'Invalid name of a checkpoint: use lower-case letters, digits and hyphens, with a letter first (max 63)',
      )
    return {
      sandbox,
      run: async ({ api, io, isJson }) => {
        const path = `/api/sandboxes/${sandbox}/checkpoints`
        const response = await api.request('POST', path, name === undefined ? {} : { name })
        if (isJson) io.print(formatJson(response))
        else io.info(`saved as ${sandbox}@${decodeVersion(response).name ?? decodeVersion(response).version}`)
      },
    }
  },
}
