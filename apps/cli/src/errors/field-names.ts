import type { SandwireError } from '@sandwire/protocol'

/** The option that sets a field of a request, and the unit of a number in that field. */
interface FieldName {
  readonly option: string
  readonly unit?: string
}

/** Options by the names of the fields that they set. */
export type FieldNames = Readonly<Record<string, FieldName>>

/** The message of an error; a refused field is named by its option. */
export function messageWithOptions({ message, details }: SandwireError, names: FieldNames): string {
  // The index of a list item is not part of the option.
  const field = details.field?.replace(/\.[0-9]+$/, '') ?? ''
  const name = Object.hasOwn(names, field) ? names[field] : undefined
  if (name === undefined || details.problem === undefined) return message
  const unit = name.unit === undefined ? '' : ` (${name.unit})`
  return `Cannot use "${name.option}": ${details.problem}${unit}`
}
