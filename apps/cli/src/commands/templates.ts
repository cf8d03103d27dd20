import { shape } from '@sandwire/protocol'
import { openRecord, decodeResponse } from '../server/response.ts'
import { shellQuote } from '@sandwire/shell-quote'
import { formatJson, formatTable } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireNoPositionals } from './positionals.ts'

const HEADER = ['TEMPLATE', 'PARAMETERS', 'WHAT IT DOES']

const parameterShape = openRecord({
  name: shape.text(64),
  /** Without one it must be given. */
  default: shape.optional(shape.text(64 * 1024)),
})
const templatesShape = openRecord({
  templates: shape.list(
    openRecord({
      id: shape.text(64),
      title: shape.text(1024),
      params: shape.list(parameterShape, 64),
    }),
    1_000,
  ),
})

/** Shows the commands that a server has ready. */
export const templates: Command = {
  help: `Usage: sbx-stdio templates [--json]

Lists the commands that the operator of the server has ready, with their parameters; those in brackets may be left out.
Run one with: sbx-stdio URL --template ID --param NAME=VALUE
`,
  options: {},
  read: (words) => {
    requireNoPositionals(words)
    return {
      run: async ({ api, io, isJson, program, server }) => {
        const answer = await api.request('GET', '/api/templates')
        if (isJson) {
          io.print(formatJson(answer))
          return
        }
        const found = decodeResponse(templatesShape, answer).templates
        if (found.length === 0) {
          io.say('the server has none')
          return
        }
        const rows = found.map(({ id, title, params }) => [
          id,
          params.map((each) => (each.default === undefined ? each.name : `[${each.name}]`)).join(' '),
          title,
        ])
        io.print(formatTable(HEADER, rows, io.columns))
        io.say(`run one with: ${program} ${shellQuote(server)} --template ID --param NAME=VALUE`)
      },
    }
  },
}
