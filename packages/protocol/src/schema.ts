/**
 * Composable decoders for JSON from peers. A decoder reads own properties only and refuses unknown ones. Its description is
 * the input of the schema hash.
 */
export interface Schema<T> {
  /** The decoded value; undefined when the input is invalid. */
  readonly decode: (value: unknown) => T | undefined
  /** Canonical description of the accepted values. */
  readonly describe: string
  /** True when the property may be absent. */
  readonly optional?: true
}

export type Decoded<S> = S extends Schema<infer T> ? T : never

export function literal<const T extends string | number | boolean>(expected: T): Schema<T> {
  return {
    decode: (value) => (value === expected ? expected : undefined),
    describe: JSON.stringify(expected),
  }
}

export function oneOf<const T extends string>(options: readonly T[]): Schema<T> {
  return { decode: (value) => options.find((option) => option === value), describe: options.join('|') }
}

/** A whole number within bounds, inclusive. */
export function integer(min: number, max: number): Schema<number> {
  return {
    decode: (value) =>
      typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max
        ? value
        : undefined,
    describe: `int(${min}..${max})`,
  }
}

/** A count, a size, or a time in milliseconds. */
export const nonNegativeInteger: Schema<number> = integer(0, Number.MAX_SAFE_INTEGER)

/** A byte offset or a sequence number. */
export const offset: Schema<number> = integer(0, Number.MAX_SAFE_INTEGER)

export const bool: Schema<boolean> = {
  decode: (value) => (typeof value === 'boolean' ? value : undefined),
  describe: 'bool',
}

/** A well-formed text: lone surrogates have no UTF-8 form. */
export function text(maxChars: number, pattern?: RegExp): Schema<string> {
  return {
    decode: (value) =>
      typeof value === 'string' &&
      value.length <= maxChars &&
      value.isWellFormed() &&
      (pattern === undefined || pattern.test(value))
        ? value
        : undefined,
    describe: `text(${maxChars}${pattern === undefined ? '' : `,${pattern.source}`})`,
  }
}

export function nullable<T>(inner: Schema<T>): Schema<T | null> {
  return { decode: (value) => (value === null ? null : inner.decode(value)), describe: `${inner.describe}?` }
}

export function list<T>(inner: Schema<T>, maxItems: number): Schema<readonly T[]> {
  return {
    decode: (value) => {
      if (!Array.isArray(value) || value.length > maxItems) return undefined
      const items: T[] = []
      for (const raw of value) {
        const item = inner.decode(raw)
        if (item === undefined) return undefined
        items.push(item)
      }
      return items
    },
    describe: `[${inner.describe};${maxItems}]`,
  }
}

/** A dictionary of texts; keys match the pattern. */
export function dictionary(
  maxEntries: number,
  key: RegExp,
  value: Schema<string>,
): Schema<Readonly<Record<string, string>>> {
  return {
    decode: (raw) => {
      if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return undefined
      const entries = Object.entries(raw)
      if (entries.length > maxEntries) return undefined
      const out: Record<string, string> = Object.create(null) as Record<string, string>
      for (const [name, item] of entries) {
        const decoded = value.decode(item)
        if (decoded === undefined || !key.test(name)) return undefined
        out[name] = decoded
      }
      return out
    },
    describe: `{${key.source}:${value.describe};${maxEntries}}`,
  }
}

export function optional<T>(inner: Schema<T>): Schema<T> & { readonly optional: true } {
  return { decode: inner.decode, describe: `${inner.describe}~`, optional: true }
}

type Fields = Readonly<Record<string, Schema<unknown>>>
type OptionalKeys<F extends Fields> = { [K in keyof F]: F[K] extends { optional: true } ? K : never }[keyof F]

/** The object a set of fields decodes to. */
export type RecordOf<F extends Fields> = {
  readonly [K in Exclude<keyof F, OptionalKeys<F>>]: Decoded<F[K]>
} & { readonly [K in OptionalKeys<F>]?: Decoded<F[K]> }

/** An object with exactly these fields; unknown fields are refused. */
export function record<const F extends Fields>(fields: F): Schema<RecordOf<F>> {
  const names = Object.keys(fields)
  return {
    decode: (raw) => {
      if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return undefined
      const source = raw as Record<string, unknown>
      for (const key of Object.keys(source)) if (!Object.hasOwn(fields, key)) return undefined
      const out: Record<string, unknown> = {}
      for (const name of names) {
        const field = fields[name]
        if (field === undefined) continue
        if (!Object.hasOwn(source, name)) {
          if (field.optional === true) continue
          return undefined
        }
        const decoded = field.decode(source[name])
        if (decoded === undefined) return undefined
        out[name] = decoded
      }
      return out as RecordOf<F>
    },
    describe: `{${names.map((name) => `${name}:${fields[name]?.describe ?? ''}`).join(',')}}`,
  }
}

/** A union of records, discriminated by `type`. */
export function tagged<const T extends Readonly<Record<string, Schema<{ readonly type: string }>>>>(
  members: T,
): Schema<Decoded<T[keyof T]>> {
  return {
    decode: (raw) => {
      if (typeof raw !== 'object' || raw === null || !Object.hasOwn(raw, 'type')) return undefined
      const { type } = raw as { type: unknown }
      if (typeof type !== 'string' || !Object.hasOwn(members, type)) return undefined
      return members[type]?.decode(raw) as Decoded<T[keyof T]> | undefined
    },
    describe: Object.entries(members)
      .map(([type, member]) => `${type}=${member.describe}`)
      .join('\n'),
  }
}
