import { describe, expect, test } from 'bun:test'
import { clientMessage, plainClientMessage } from './client-frames.ts'
import { ERRORS } from './errors.ts'
import * as limits from './limits.ts'
import { plainServerMessage, serverMessage } from './server-frames.ts'

const page = await Bun.file(new URL('../../../docs/protocol.md', import.meta.url)).text()

/** Rows of the tables under a heading, as cells. */
function rowsUnder(heading: string): string[][] {
  const from = page.indexOf(`\n${heading}\n`)
  const section = page.slice(from + heading.length + 2).split(/\n##+ /)[0] ?? ''
  return section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
}

/** Types and fields of a message in the code's schema description: `a=int(0..1),b=text(3)~`. */
function describeMessages(description: string): Record<string, string[]> {
  const messages: Record<string, string[]> = {}
  for (const line of description.split('\n')) {
    const at = line.indexOf('=')
    const type = line.slice(0, at)
    const body = line.slice(at + 2, -1)
    messages[type] = splitFields(body)
      .filter((field) => !field.startsWith('type:'))
      .map(nameOfField)
  }
  return messages
}

/** Splits at commas that are not inside brackets. */
function splitFields(body: string): string[] {
  const fields: string[] = []
  let depth = 0
  let field = ''
  for (const char of body) {
    if ('({['.includes(char)) depth += 1
    if (')}]'.includes(char)) depth -= 1
    if (char === ',' && depth === 0) {
      fields.push(field)
      field = ''
    } else field += char
  }
  return field === '' ? fields : [...fields, field]
}

function nameOfField(field: string): string {
  const name = field.slice(0, field.indexOf(':'))
  if (field.endsWith('~')) return `${name}?`
  return field.endsWith('?') ? `${name}|null` : name
}

function fieldsOnPage(heading: string): Record<string, string[]> {
  const unquote = (cell: string): string => cell.replaceAll('`', '').replaceAll('\\|', '|')
  return Object.fromEntries(
    rowsUnder(heading).map(([type = '', fields = '']) => [
      unquote(type),
      unquote(fields)
        .split(', ')
        .filter((name) => name !== ''),
    ]),
  )
}

describe('docs/protocol.md', () => {
  test.each([
    ['### Plain, client to server', plainClientMessage.describe],
    ['### Plain, server to client', plainServerMessage.describe],
    ['### sandwire.v1, client to server', clientMessage.describe],
    ['### sandwire.v1, server to client', serverMessage.describe],
  ])('[V2] lists the messages of the code under %s', (heading, description) => {
    expect(fieldsOnPage(heading)).toEqual(describeMessages(description))
  })

  test('[E2] lists the errors of the code', () => {
    const onPage = rowsUnder('## Errors').map(([code, , ...rest]) => [code?.replaceAll('`', ''), ...rest])
    const inCode = Object.entries(ERRORS).map(([code, row]) => {
      return [code, String(row.status), String(row.close), String(row.exit), row.retryable ? 'yes' : 'no']
    })
    expect(onPage).toEqual(inCode)
  })

  test('[B1] names every limit of the code', () => {
    const names = Object.keys(limits)
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([])
  })
})
