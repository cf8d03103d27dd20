import { SandwireError } from '@sandwire/protocol'
import type { MiddlewareHandler } from 'hono'
import { withDeadline } from './deadline.ts'
import { readToEnd } from './read-bounded.ts'

/** How long a buffered body may take. */
const BODY_MS = 20_000
/** Most of a key that is echoed. */
const MAX_NAME_CHARS = 60

export function bodyTooLarge(maxBytes: number): SandwireError {
  return new SandwireError('frame_too_large', `Cannot read the body: more than ${maxBytes} bytes`)
}

export function badBody(problem: string): SandwireError {
  return new SandwireError('bad_request', `Cannot read the body: ${problem}`)
}

/** Reads a request body. Throws `frame_too_large`, `bad_request` if it is incomplete, or the signal's reason. */
export async function readRequestBody(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  signal?: AbortSignal,
): Promise<ArrayBuffer> {
  const read = await readToEnd(body, maxBytes, signal)
  switch (read.kind) {
    case 'whole':
      return read.bytes
    case 'tooLarge':
      throw bodyTooLarge(maxBytes)
    case 'broken':
      throw badBody('incomplete')
  }
}

/** Buffers the body within bounds before a handler reads it. Runs after the guard, so only for authenticated clients. */
export function holdBody(maxBytes: number, ms = BODY_MS): MiddlewareHandler {
  const late = (): SandwireError =>
    new SandwireError('silent', `Cannot read the body: not received within ${Math.ceil(ms / 1000)} s`)
  return async (context, next) => {
    const { raw } = context.req
    if (raw.body !== null && raw.method !== 'GET' && raw.method !== 'HEAD') {
      if (Number(raw.headers.get('content-length') ?? 0) > maxBytes) throw bodyTooLarge(maxBytes)
      const { body } = raw
      const bytes = await withDeadline({ ms, late }, (signal) => readRequestBody(body, maxBytes, signal))
      context.req.raw = new Request(raw, { method: raw.method, body: bytes })
    }
    context.set('isBodyHeld', true)
    await next()
  }
}

/** Index after the string that starts here. The text is valid JSON, so the string ends. */
function endOfString(text: string, from: number): number {
  let at = from + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (' \t\r\n'.includes(text[at] ?? '.')) at += 1
  return at
}

/** A key that an object in this valid JSON has twice, if any. Parsers differ in which one counts. */
export function findDuplicateKey(text: string): string | undefined {
  /** Keys of each open object; an empty set for each open array. */
  const open: Set<string>[] = []
  let at = 0
  while (at < text.length) {
    const char = text[at]
    if (char === '{' || char === '[') open.push(new Set())
    else if (char === '}' || char === ']') open.pop()
    else if (char === '"') {
      const end = endOfString(text, at)
      if (text[skipSpace(text, end)] === ':') {
        const key = String(JSON.parse(text.slice(at, end)))
        const keys = open.at(-1)
        if (keys?.has(key) === true) return key
        keys?.add(key)
      }
      at = end
      continue
    }
    at += 1
  }
  return undefined
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    // The decoder of the body reports it.
    return false
  }
}

/** Refuses a JSON body in which an object has a key twice. */
export const refuseDuplicateKeys: MiddlewareHandler = async (context, next) => {
  const text = await context.req.text()
  const key = isJson(text) ? findDuplicateKey(text) : undefined
  if (key === undefined) return next()
  const shown = key.replace(/\p{C}/gu, '').slice(0, MAX_NAME_CHARS)
  throw new SandwireError('bad_request', `Cannot use "${shown}": given twice`)
}
