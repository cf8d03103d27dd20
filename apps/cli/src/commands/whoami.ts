import { schema } from '@sandwire/protocol'
import { looseObject, decodeResponse } from '../server/response.ts'
import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireNoPositionals } from './positionals.ts'

const whoSchema = looseObject({
  name: schema.text(1024),
  account: schema.text(256),
  scopes: schema.list(schema.text(64), 16),
})

const HOW = {
  none: 'without a credential',
  given: 'with the given token',
  signIn: 'signed in',
  guest: 'as a guest',
  local: 'as the user of this machine',
} as const

/** Shows the account that the server knows the user as. */
export const whoami: Command = {
  help: `Usage: sbx-stdio whoami [--json]

Shows your account on the server, how you are authenticated, and what you may do.
`,
  options: {},
  parse: (options) => {
    requireNoPositionals(options)
    return {
      run: async ({ api, credential, io, isJson, origin }) => {
        const response = await api.request('GET', '/api/whoami')
        if (isJson) {
          io.print(formatJson(response))
          return
        }
        const { name, scopes } = decodeResponse(whoSchema, response)
        io.print(`${printable(name)}\n`)
        io.info(
          `at ${new URL(origin).host}, ${HOW[credential]}; scopes: ${printable(scopes.join(', ')) || 'none'}`,
        )
      },
    }
  },
}
