import { schema } from '@sandwire/protocol'
import { looseObject, decodeResponse } from '../server/response.ts'
import { shellQuote } from '@sandwire/shell-quote'
import { formatJson, formatTable } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireNoPositionals } from './positionals.ts'

const HEADER = ['TEMPLATE', 'PARAMETERS', 'DESCRIPTION']

const parameterSchema = looseObject({
  name: schema.text(64),
  /** Without a default, the parameter is required. */
  default: schema.optional(schema.text(64 * 1024)),
})
const templatesSchema = looseObject({
  templates: schema.list(
    looseObject({
      id: schema.text(64),
      title: schema.text(1024),
      params: schema.list(parameterSchema, 64),
    }),
    1_000,
  ),
})

/** Lists the command templates of a server. */
export const templates: Command = {
  help: `Usage: sbx-stdio templates [--json]

Lists the command templates of the server with their parameters; parameters in brackets are optional.
Run one with: sbx-stdio URL --template ID --param NAME=VALUE
`,
  options: {},
  parse: (options) => {
    requireNoPositionals(options)
    return {
      run: async ({ api, io, isJson, program, server }) => {
        const response = await api.request('GET', '/api/templates')
        if (isJson) {
          io.print(formatJson(response))
          return
        }
        const found = decodeResponse(templatesSchema, response).templates
        if (found.length === 0) {
          io.info('the server has no templates')
          return
        }
        const rows = found.map(({ id, title, params }) => [
          id,
          params.map((each) => (each.default === undefined ? each.name : `[${each.name}]`)).join(' '),
          title,
        ])
        io.print(formatTable(HEADER, rows, io.columns))
        io.info(`run one with: ${program} ${shellQuote(server)} --template ID --param NAME=VALUE`)
      },
    }
  },
}
