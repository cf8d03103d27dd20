import { formatBytes, formatSpan } from '../text/amounts.ts'

/** How a field of a request is called on the command line, and what a number in it counts. */
interface FieldName {
  readonly option: string
  readonly counts?: 'bytes' | 'thousandths' | 'seconds'
}

/** What a command calls the fields of its request. */
export type FieldNames = Readonly<Record<string, FieldName>>

const UNITS = {
  bytes: { what: 'a size', spell: formatBytes },
  thousandths: { what: 'a number', spell: (count: number) => String(count / 1000) },
  seconds: { what: 'a time', spell: formatSpan },
} as const

/** A refusal in the words of the command line: the server speaks of fields, in its own units. */
export function renameFields(message: string, names: FieldNames): string {
  const [, field = '', why = ''] = /^Cannot use "([A-Za-z.]+?)(?:\.[0-9]+)?": (.*)$/s.exec(message) ?? []
  const name = Object.hasOwn(names, field) ? names[field] : undefined
  if (name === undefined) return message
  const unit = name.counts === undefined ? undefined : UNITS[name.counts]
  const range = /^expected a whole number from ([0-9]+) to ([0-9]+)$/.exec(why)
  const told =
    unit === undefined || range === null
      ? why
      : `expected ${unit.what} from ${unit.spell(Number(range[1]))} to ${unit.spell(Number(range[2]))}`
  return `Cannot use "${name.option}": ${told}`
}
