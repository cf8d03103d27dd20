import { type ErrorCode, ERRORS, SandwireError } from '@sandwire/protocol'
import { respondJson } from '../http/respond.ts'
import { quotePath } from '../workspace/beneath/file-error.ts'

/** An error as `{"detail": …}`. Our error code is in a header; `status` overrides the status of our error table. */
export function respondCompatError(
  { code, message }: SandwireError,
  requestId: string,
  status: number = ERRORS[code].status,
): Response {
  const headers = { 'x-request-id': requestId, 'x-sandwire-code': code }
  return respondJson({ detail: message }, { status, headers })
}

/** A validation problem of a request, in the format of FastAPI, which the older server uses. */
export interface ValidationProblem {
  readonly type: string
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly input: unknown
  readonly ctx?: Readonly<Record<string, string | number>>
}

export function missing(loc: readonly string[], input: unknown = null): ValidationProblem {
  return { type: 'missing', loc, msg: 'Field required', input }
}

export function respondUnprocessable(problems: readonly ValidationProblem[]): Response {
  return respondJson({ detail: problems }, { status: 422 })
}

type StringFields<Name extends string> =
  | { readonly fields: Readonly<Record<Name, string>> }
  | { readonly problems: readonly ValidationProblem[] }

/** Reads string fields of a JSON body; `undefined` stands for a missing body. */
export function readStringFields<const Name extends string>(
  body: unknown,
  names: readonly Name[],
): StringFields<Name> {
  if (body === undefined) return { problems: [missing(['body'])] }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return { problems: [notAnObject(body)] }
  const values = new Map<string, unknown>(Object.entries(body))
  const problems = names.flatMap((name) => findFieldProblem(name, values, body))
  if (problems.length > 0) return { problems }
  const fields = Object.fromEntries(names.map((name) => [name, String(values.get(name))]))
  return { fields: fields as Record<Name, string> }
}

function notAnObject(input: unknown): ValidationProblem {
  const msg = 'Input should be a valid dictionary or object to extract fields from'
  return { type: 'model_attributes_type', loc: ['body'], msg, input }
}

function findFieldProblem(
  name: string,
  values: ReadonlyMap<string, unknown>,
  body: object,
): ValidationProblem[] {
  const loc = ['body', name]
  if (!values.has(name)) return [missing(loc, body)]
  const input = values.get(name)
  if (typeof input === 'string') return []
  return [{ type: 'string_type', loc, msg: 'Input should be a valid string', input }]
}

/** A path for an error message, without quotes and with printable characters only. */
export function printablePath(path: string): string {
  return quotePath(path).slice(1, -1)
}

export function traversalError(path: string, cause?: unknown): SandwireError {
  return new SandwireError('path_refused', `Path traversal detected: ${printablePath(path)}`, { cause })
}

/** Runs an action and replaces the message of an error whose code is listed; other errors keep their message. */
export async function withMessages<T>(
  path: string,
  messages: Partial<Record<ErrorCode, string>>,
  action: () => Promise<T>,
): Promise<T> {
  try {
    return await action()
  } catch (caught) {
    const error = SandwireError.from(caught)
    if (error.code === 'path_refused' && messages.path_refused === undefined)
      throw traversalError(path, error)
    throw new SandwireError(error.code, messages[error.code] ?? error.message, { cause: error })
  }
}
