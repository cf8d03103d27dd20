import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { decodeVersions, type Version } from './responses.ts'
import { requireVersion } from './version-argument.ts'

/** Replaces the files of a sandbox by a saved version. */
export const restore: Command = {
  help: `Usage: sbx-stdio restore SANDBOX@VERSION [--json]

Replaces the files of a sandbox by a saved version and restarts it; its programs end. The current files are saved
first, as a version to which you can go back.
`,
  options: {},
  parse: (options) => {
    const { sandbox, version } = requireVersion(options)
    return {
      sandbox,
      hintCommand: `checkpoints ${sandbox}`,
      run: async ({ api, io, isJson }) => {
        const path = `/api/sandboxes/${sandbox}/checkpoints`
        const list = async (): Promise<readonly Version[]> =>
          decodeVersions(await api.request('GET', path)).versions
        const [newest] = isJson ? [] : await list()
        const response = await api.request('POST', `${path}/${version}/restore`)
        if (isJson) {
          io.print(formatJson(response))
          return
        }
        io.info(`${sandbox} has the files of version ${version}`)
        const present = (await list()).find(
          (each) => each.kind === 'checkpoint' && each.version >= (newest?.version ?? 0),
        )
        if (present !== undefined) io.info(`to undo this: sbx-stdio restore ${sandbox}@${present.version}`)
      },
    }
  },
}
