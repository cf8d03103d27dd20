import type { schema } from '@sandwire/protocol'

/** A field of a settings object. */
export interface Field<T> {
  readonly schema: schema.Schema<T>
  /** Describes valid values in error messages. */
  readonly expected: string
  /** Used when the field is missing; without it the field is required. */
  readonly fallback?: T
}

type Fields = Readonly<Record<string, Field<unknown>>>
type Validated<F extends Fields> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never }

/** Decodes an object with exactly these fields; otherwise returns undefined and adds every problem to `problems`. */
export function validateRecord<const F extends Fields>(
  where: string,
  raw: unknown,
  fields: F,
  problems: string[],
): Validated<F> | undefined {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    problems.push(`${where}: expected an object`)
    return undefined
  }
  const before = problems.length
  const given = new Map<string, unknown>(Object.entries(raw))
  for (const name of given.keys())
    if (!Object.hasOwn(fields, name)) problems.push(`${where}: "${name}" is not a setting`)
  const out: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(fields)) {
    const value = given.has(name) ? field.schema.decode(given.get(name)) : field.fallback
    const isOmitted = !given.has(name) && 'fallback' in field
    if (value === undefined && !isOmitted) problems.push(`${where}: "${name}" must be ${field.expected}`)
    out[name] = value
  }
  return problems.length > before ? undefined : (out as Validated<F>)
}

/** Accepts any value, for fields that the caller validates itself. */
export const anything: schema.Schema<unknown> = { decode: (value) => value ?? null, describe: 'any' }
