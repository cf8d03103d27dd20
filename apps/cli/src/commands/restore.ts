import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireVersion } from './version-argument.ts'

/** Replaces the files of a sandbox by a saved version. */
export const restore: Command = {
  help: `Usage: sbx-stdio restore SANDBOX@VERSION [--json]

Replaces the files of a sandbox by a saved version and restarts it; its programs end. The present files are saved
first, so that you can go back: sbx-stdio checkpoints SANDBOX.
`,
  options: {},
  parse: (options) => {
    const { sandbox, version } = requireVersion(options)
    return {
      sandbox,
      hintCommand: `checkpoints ${sandbox}`,
      run: async ({ api, io, isJson }) => {
        const path = `/api/sandboxes/${sandbox}/checkpoints/${version}/restore`
        const response = await api.request('POST', path)
        if (isJson) io.print(formatJson(response))
        else io.info(`${sandbox} has the files of version ${version}`)
      },
    }
  },
}
