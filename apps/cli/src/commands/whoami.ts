import { shape } from '@sandwire/protocol'
import { openRecord, decodeResponse } from '../server/response.ts'
import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireNoPositionals } from './positionals.ts'

const whoShape = openRecord({
  name: shape.text(1024),
  account: shape.text(256),
  scopes: shape.list(shape.text(64), 16),
})

const HOW = {
  none: 'without a credential',
  given: 'with the token that was given',
  signIn: 'signed in',
  guest: 'as a guest',
  own: 'as the user of this machine',
} as const

/** Says who the server takes one for. */
export const whoami: Command = {
  help: `Usage: sbx-stdio whoami [--json]

Says who the server takes you for, how it knows, and what you may do there.
`,
  options: {},
  read: (words) => {
    requireNoPositionals(words)
    return {
      run: async ({ api, credential, io, isJson, origin }) => {
        const answer = await api.request('GET', '/api/whoami')
        if (isJson) {
          io.print(formatJson(answer))
          return
        }
        const { name, scopes } = decodeResponse(whoShape, answer)
        io.print(`${printable(name)}\n`)
        io.say(
          `at ${new URL(origin).host}, ${HOW[credential]}; may ${printable(scopes.join(', ')) || 'nothing'}`,
        )
      },
    }
  },
}
