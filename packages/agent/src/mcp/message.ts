import { isRecord, type Json } from '../json.ts'

/** Longest line of a client; larger than any call of our tools. */
export const MAX_MCP_LINE_BYTES = 256 * 1024
const MAX_ID_CHARS = 256
const MAX_METHOD_CHARS = 128

/** Error codes of JSON-RPC. */
export const PARSE_ERROR = -32_700
export const INVALID_REQUEST = -32_600
export const METHOD_NOT_FOUND = -32_601
export const INVALID_PARAMS = -32_602
/** Of this server: it accepts no more calls now. */
export const TOO_MANY_CALLS = -32_000

export type McpId = string | number

/** A line of a client of the Model Context Protocol: a JSON-RPC message. */
export type McpMessage =
  | { readonly kind: 'request'; readonly id: McpId; readonly method: string; readonly params: Json }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Json }
  /** The answer to a request; this server sends none. */
  | { readonly kind: 'response' }
  | {
      readonly kind: 'invalid'
      readonly id: McpId | null
      readonly code: number
      readonly message: string
    }

function invalid(message: string, id: McpId | null = null): McpMessage {
  return { kind: 'invalid', id, code: INVALID_REQUEST, message }
}

function isId(value: unknown): value is McpId {
  return typeof value === 'string' ? value.length <= MAX_ID_CHARS : Number.isSafeInteger(value)
}

/** Decodes a line; never throws. Batches are refused, as in the current version of the protocol. */
export function decodeMcp(line: string): McpMessage {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    // Not JSON, or nested too deeply for the parser.
    return { kind: 'invalid', id: null, code: PARSE_ERROR, message: 'The line is not JSON' }
  }
  if (!isRecord(value)) return invalid('The message is not an object')
  const { jsonrpc, id, method, params = {} } = value
  if (jsonrpc !== '2.0') return invalid('"jsonrpc" is not "2.0"')
  const hasId = Object.hasOwn(value, 'id')
  if (hasId && !isId(id)) return invalid('"id" is neither a text nor a whole number')
  const known = hasId && isId(id) ? id : null
  if (method === undefined)
    return Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error')
      ? { kind: 'response' }
      : invalid('"method" is missing', known)
  if (typeof method !== 'string' || method.length > MAX_METHOD_CHARS)
    return invalid('"method" is not a short text', known)
  if (!isRecord(params)) return invalid('"params" is not an object', known)
  return known === null
    ? { kind: 'notification', method, params }
    : { kind: 'request', id: known, method, params }
}
