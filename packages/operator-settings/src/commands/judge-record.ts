import type { shape } from '@sandwire/protocol'

/** A field of a settings object. */
export interface Field<T> {
  readonly shape: shape.Shape<T>
  /** What it may be, for whoever wrote it. */
  readonly expected: string
  /** Stands for it when it is not there; without one it must be. */
  readonly fallback?: T
}

type Fields = Readonly<Record<string, Field<unknown>>>
type Judged<F extends Fields> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never }

/** Decodes an object of exactly these fields; undefined when it is none, with every reason added to `problems`. */
export function validateRecord<const F extends Fields>(
  where: string,
  raw: unknown,
  fields: F,
  problems: string[],
): Judged<F> | undefined {
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
    const value = given.has(name) ? field.shape.decode(given.get(name)) : field.fallback
    const isLeftOut = !given.has(name) && 'fallback' in field
    if (value === undefined && !isLeftOut) problems.push(`${where}: "${name}" must be ${field.expected}`)
    out[name] = value
  }
  return problems.length > before ? undefined : (out as Judged<F>)
}

/** Anything, to be judged by somebody else. */
export const anything: shape.Shape<unknown> = { decode: (value) => value ?? null, describe: 'any' }
