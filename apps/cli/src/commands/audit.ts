import { schema } from '@sandwire/protocol'
import { parseSeconds } from '../text/amounts.ts'
import { looseObject, decodeResponse } from '../server/response.ts'
import { formatJson, formatTable, formatUtc } from '../text/table.ts'
import { UsageError } from '../errors/errors.ts'
import type { Api } from '../server/api.ts'
import type { Command, CommandOptions } from './command.ts'
import { requireNoPositionals } from './positionals.ts'

const HEADER = ['WHEN', 'WHO', 'FROM', 'WHAT', 'SANDBOX', 'OUTCOME', 'HOW']
const DEFAULT_SINCE = '7d'
/** Rows per response. */
const PAGE_ROWS = 1_000
/** More than a server keeps, so that a hostile server cannot make this run forever. */
const MAX_ROWS = 150_000
const MAX_PAGES = 1_000
const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

const text = schema.text(1024)
const optionalText = schema.optional(schema.nullable(text))
const optionalNumber = schema.optional(schema.nullable(schema.nonNegativeInteger))
const rowSchema = looseObject({
  atMs: schema.nonNegativeInteger,
  actorName: text,
  action: text,
  sandbox: optionalText,
  sandboxName: optionalText,
  session: optionalText,
  address: text,
  outcome: text,
  code: optionalText,
  template: optionalText,
  command: optionalText,
  dropped: optionalNumber,
  droppedSinceMs: optionalNumber,
})
type Row = schema.Decoded<typeof rowSchema>
/** Rows are passed through for JSON output. */
const anyValue: schema.Schema<unknown> = { decode: (value) => value, describe: 'any' }
const pageSchema = looseObject({
  rows: schema.list(anyValue, PAGE_ROWS),
  next: schema.nullable(schema.text(64, /^[0-9-]+$/)),
})

function parseSince(options: CommandOptions): number {
  const seconds = parseSeconds(options.value('since') ?? DEFAULT_SINCE)
  if (seconds === undefined || seconds === 0)
    throw new UsageError('Option "--since" must be a time such as 1h or 7d')
  return seconds
}

function parseSandboxOption(options: CommandOptions): string | undefined {
  const name = options.value('sandbox')
  if (name !== undefined && !NAME.test(name))
    throw new UsageError('Option "--sandbox" must be the name or id of a sandbox', 'sbx-stdio list')
  return name
}

/** Reads all rows, newest first, page by page. */
async function readRows(api: Api, query: Readonly<Record<string, string>>): Promise<readonly unknown[]> {
  const rows: unknown[] = []
  let before: string | undefined
  let pages = 0
  do {
    const parameters = new URLSearchParams({
      ...query,
      limit: String(PAGE_ROWS),
      ...(before === undefined ? {} : { before }),
    })
    const page = decodeResponse(pageSchema, await api.request('GET', `/api/audit?${parameters.toString()}`))
    rows.push(...page.rows)
    // A page can be empty when none of the rows that the server examined for it match.
    before = page.next ?? undefined
    pages += 1
  } while (before !== undefined && rows.length < MAX_ROWS && pages < MAX_PAGES)
  return rows
}

/** How many events are missing. */
function formatGap({ dropped, droppedSinceMs }: Row): string | undefined {
  if (dropped === undefined || dropped === null) return undefined
  const since = typeof droppedSinceMs === 'number' ? ` since ${formatUtc(droppedSinceMs)}` : ''
  return `${dropped} ${dropped === 1 ? 'event' : 'events'} not recorded${since}`
}

function formatRow(row: Row): readonly string[] {
  const parts = [row.template ?? row.command, row.code, formatGap(row)]
  const how = parts.filter((part) => part !== undefined && part !== null)
  return [
    formatUtc(row.atMs),
    row.actorName === '' ? '(server)' : row.actorName,
    row.address === '' ? '-' : row.address,
    row.action,
    row.sandboxName ?? row.sandbox ?? '-',
    row.outcome,
    how.length === 0 ? '-' : how.join(' '),
  ]
}

/** Shows the audit log. */
export const audit: Command = {
  help: `Usage: sbx-stdio audit [--sandbox NAME] [--since TIME] [--json]

Shows who did what in your account and your sandboxes: when (UTC), from where, and whether it was allowed; newest
first. The log is kept for 90 days, also for removed sandboxes. An event "audit.dropped" says how many are missing.

  --sandbox NAME       only this sandbox, by name or id
  --since TIME         how far back: 30m, 24h, 7d (default: 7d)
`,
  options: { sandbox: 'value', since: 'value' },
  parse: (options) => {
    requireNoPositionals(options)
    const sandbox = parseSandboxOption(options)
    const seconds = parseSince(options)
    return {
      ...(sandbox === undefined ? {} : { sandbox }),
      run: async ({ api, io, isJson, nowMs }) => {
        const since = String(Math.max(0, nowMs - seconds * 1000))
        const rows = await readRows(api, { since, ...(sandbox === undefined ? {} : { sandbox }) })
        if (isJson) io.print(formatJson({ rows }))
        else if (rows.length === 0) io.info('no events in this time')
        else
          io.print(
            formatTable(
              HEADER,
              rows.map((row) => formatRow(decodeResponse(rowSchema, row))),
              io.columns,
            ),
          )
      },
    }
  },
}
