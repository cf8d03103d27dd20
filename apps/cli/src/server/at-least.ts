import { SandwireError, shape } from '@sandwire/protocol'

type Fields = Readonly<Record<string, shape.Shape<unknown>>>

/** An object with at least these fields; what a newer server adds is left out. */
export function atLeast<const F extends Fields>(fields: F): shape.Shape<shape.Fielded<F>> {
  const exact = shape.record(fields)
  return {
    decode: (value) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
      return exact.decode(
        Object.fromEntries(Object.entries(value).filter(([name]) => Object.hasOwn(fields, name))),
      )
    },
    describe: exact.describe,
  }
}

/** Narrows an answer of a server. Throws when it is not what this version knows. */
export function decodeAnswer<T>(expected: shape.Shape<T>, value: unknown): T {
  const decoded = expected.decode(value)
  if (decoded === undefined)
    throw new SandwireError('version_unsupported', 'Cannot understand the answer of the server')
  return decoded
}
