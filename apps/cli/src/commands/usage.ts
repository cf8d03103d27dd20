import { schema } from '@sandwire/protocol'
import { decodeResponse, looseObject } from '../server/response.ts'
import { formatBytes } from '../text/amounts.ts'
import { formatJson, formatTable } from '../text/table.ts'
import type { Command } from './command.ts'
import { requireNoPositionals } from './positionals.ts'

const amount = schema.nonNegativeInteger
const useSchema = looseObject({ used: amount, limit: schema.nullable(amount) })
const optionalUse = schema.optional(useSchema)
const optionalAmount = schema.optional(amount)

const usageSchema = looseObject({
  account: looseObject({
    sandboxes: useSchema,
    running: useSchema,
    sessions: useSchema,
    memoryBytes: optionalUse,
    milliCpus: optionalUse,
    pids: optionalUse,
    diskBytes: optionalUse,
    storedBytes: optionalUse,
  }),
  sandbox: looseObject({
    sessions: optionalAmount,
    memoryBytes: optionalAmount,
    milliCpus: optionalAmount,
    pids: optionalAmount,
    diskBytes: optionalAmount,
    networks: schema.list(schema.text(64), 16),
    idleSeconds: schema.nullable(amount),
  }),
})
type Usage = schema.Decoded<typeof usageSchema>

type Format = (amount: number) => string
const count: Format = String
const cpus: Format = (milliCpus) => String(milliCpus / 1000)

/** Rows of the table: what is counted, and how it is shown. */
const ROWS = [
  ['sandboxes', 'sandboxes', count],
  ['running sandboxes', 'running', count],
  ['sessions', 'sessions', count],
  ['memory', 'memoryBytes', formatBytes],
  ['CPUs', 'milliCpus', cpus],
  ['processes', 'pids', count],
  ['disk', 'diskBytes', formatBytes],
  ['saved files, runs and conversations', 'storedBytes', formatBytes],
] as const

const HEADER = ['', 'USED', 'LIMIT', 'PER SANDBOX']

/** Use and limits of the account, as a table and a line about sandboxes. */
function formatUsage({ account, sandbox }: Usage, columns: number | undefined): string {
  const highest: Readonly<Record<string, unknown>> = sandbox
  const rows = ROWS.flatMap(([title, name, format]) => {
    const use = account[name]
    const own = highest[name]
    if (use === undefined) return []
    const limit = use.limit === null ? '-' : format(use.limit)
    return [[title, format(use.used), limit, typeof own === 'number' ? format(own) : '-']]
  })
  return formatTable(HEADER, rows, columns)
}

/** Shows what the account uses and how much it may use. */
export const usage: Command = {
  help: `Usage: sbx-stdio usage [--json]

Shows what your sandboxes use, how much they may use together, and how much one of them may use.
Memory, CPUs and processes are those of running sandboxes, as they were reserved when they were created.
`,
  options: {},
  parse: (options) => {
    requireNoPositionals(options)
    return {
      run: async ({ api, io, isJson }) => {
        const response = await api.request('GET', '/api/account/usage')
        if (isJson) {
          io.print(formatJson(response))
          return
        }
        const decoded = decodeResponse(usageSchema, response)
        io.print(formatUsage(decoded, io.columns))
        const { networks, idleSeconds } = decoded.sandbox
        const idle = idleSeconds === null ? 'any time' : `at most ${idleSeconds} s`
        io.info(`networks: ${networks.join(', ')}; idle before a sandbox stops: ${idle}`)
      },
    }
  },
}
