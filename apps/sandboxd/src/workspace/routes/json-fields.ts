import { SandwireError } from '@sandwire/protocol'
import { readJson } from '../../http/request-body.ts'

function bad(name: string, why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use field "${name}": ${why}`)
}

/** The fields of a JSON body, all of them known; every method throws `bad_request`. */
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
    if (unknown !== undefined) throw bad(unknown.replace(/\p{C}/gu, '').slice(0, 40), 'unknown')
    return new JsonFields(fields)
  }

  text(name: string): string {
    const value = this.#fields.get(name)
    if (typeof value !== 'string') throw bad(name, 'expected a text')
    return value
  }

  /** Of any kind; undefined when absent. */
  value(name: string): unknown {
    return this.#fields.get(name)
  }

  flag(name: string): boolean {
    const value = this.#fields.get(name) ?? false
    if (typeof value !== 'boolean') throw bad(name, 'expected true or false')
    return value
  }
}
