import { respondJson } from '../../http/respond.ts'

/** One thing that is wrong with a request, as the contract's framework says it. */
export interface Flaw {
  readonly type: string
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly input: unknown
  readonly ctx?: Readonly<Record<string, string | number>>
}

export function missing(loc: readonly string[], input: unknown = null): Flaw {
  return { type: 'missing', loc, msg: 'Field required', input }
}

export function respondFlaws(flaws: readonly Flaw[]): Response {
  return respondJson({ detail: flaws }, { status: 422 })
}

/** Fields of a body that are texts, or what is wrong with it. */
export function readTexts<const Name extends string>(
  body: unknown,
  names: readonly Name[],
): { readonly texts: Readonly<Record<Name, string>> } | { readonly flaws: readonly Flaw[] } {
  if (body === undefined) return { flaws: [missing(['body'])] }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return { flaws: [notAnObject(body)] }
  const fields = new Map<string, unknown>(Object.entries(body))
  const flaws = names.flatMap((name) => flawOf(name, fields, body))
  if (flaws.length > 0) return { flaws }
  const texts = Object.fromEntries(names.map((name) => [name, String(fields.get(name))]))
  return { texts: texts as Record<Name, string> }
}

function notAnObject(input: unknown): Flaw {
  const msg = 'Input should be a valid dictionary or object to extract fields from'
  return { type: 'model_attributes_type', loc: ['body'], msg, input }
}

function flawOf(name: string, fields: ReadonlyMap<string, unknown>, body: object): Flaw[] {
  const loc = ['body', name]
  if (!fields.has(name)) return [missing(loc, body)]
  const input = fields.get(name)
  if (typeof input === 'string') return []
  return [{ type: 'string_type', loc, msg: 'Input should be a valid string', input }]
}
