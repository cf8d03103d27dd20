import { decodePath, SandwireError } from '@sandwire/protocol'
import { readJson } from '../../http/request-body.ts'

function parameterError(name: string, why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${why}`)
}

/**
 * Query parameters. A path is bytes, which `URLSearchParams` would decode as UTF-8. Every method throws `bad_request`, also for
 * a repeated parameter.
 */
export class Query {
  readonly #pairs: readonly (readonly [string, string])[]

  constructor(url: URL) {
    this.#pairs = url.search
      .slice(1)
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => {
        const at = pair.indexOf('=')
        return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
      })
  }

  /** All values of a parameter; bytes that are not UTF-8 are represented as in paths. */
  all(name: string): string[] {
    return this.#pairs
      .filter(([key]) => decodePath(key) === name)
      .map(([, value]) => {
        const text = decodePath(value)
        if (text === undefined) throw parameterError(name, 'not percent-encoded')
        return text
      })
  }

  optional(name: string): string | undefined {
    const [value, second] = this.all(name)
    if (second !== undefined) throw parameterError(name, 'given twice')
    return value
  }

  /** A value or the fallback; required when there is no fallback. */
  text(name: string, fallback?: string): string {
    const value = this.optional(name) ?? fallback
    if (value === undefined) throw parameterError(name, 'missing')
    return value
  }

  /** True for 1, false for 0 and when absent. */
  flag(name: string): boolean {
    const value = this.optional(name) ?? '0'
    if (value !== '0' && value !== '1') throw parameterError(name, 'expected 0 or 1')
    return value === '1'
  }

  choice<const T extends string>(name: string, options: readonly T[], fallback: T): T {
    const value = this.optional(name)
    if (value === undefined) return fallback
    const found = options.find((option) => option === value)
    if (found === undefined) throw parameterError(name, `expected ${options.join(' or ')}`)
    return found
  }

  /** A decimal integer. */
  integer(name: string, range: { readonly min: number; readonly max: number }): number | undefined {
    const value = this.optional(name)
    if (value === undefined) return undefined
    const number = /^(0|[1-9][0-9]{0,15})$/.test(value) ? Number(value) : Number.NaN
    if (!(number >= range.min && number <= range.max))
      throw parameterError(name, `expected a whole number from ${range.min} to ${range.max}`)
    return number
  }
}

function fieldError(name: string, why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use field "${name}": ${why}`)
}

/** The fields of a JSON body. Unknown fields are refused; every method throws `bad_request`. */
export class JsonFields {
  readonly #fields: ReadonlyMap<string, unknown>

  private constructor(fields: ReadonlyMap<string, unknown>) {
    this.#fields = fields
  }

  static async read(request: Request, known: readonly string[]): Promise<JsonFields> {
    const body = await readJson(request)
    if (typeof body !== 'object' || body === null || Array.isArray(body))
      throw new SandwireError('bad_request', 'Cannot read the body: expected a JSON object')
    const fields = new Map<string, unknown>(Object.entries(body))
    const unknown = [...fields.keys()].find((name) => !known.includes(name))
    if (unknown !== undefined) throw fieldError(unknown.replace(/\p{C}/gu, '').slice(0, 40), 'unknown')
    return new JsonFields(fields)
  }

  text(name: string): string {
    const value = this.#fields.get(name)
    if (typeof value !== 'string') throw fieldError(name, 'expected a text')
    return value
  }

  /** Any value; undefined when absent. */
  value(name: string): unknown {
    return this.#fields.get(name)
  }

  flag(name: string): boolean {
    const value = this.#fields.get(name) ?? false
    if (typeof value !== 'boolean') throw fieldError(name, 'expected true or false')
    return value
  }
}
