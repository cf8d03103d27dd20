/** The empty line that ends a message head. */
const CRLF = Buffer.from('\r\n')
const HEAD_END = Buffer.from('\r\n\r\n')
const MAX_HEADERS = 100
/** Characters of a header name. */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/

export type Header = readonly [name: string, value: string]

/** The first line of a message and its headers, each free of control characters. */
export interface MessageHead {
  readonly firstLine: string
  readonly headers: readonly Header[]
}

/** Length of the head, including its empty line; undefined while incomplete. */
export function findHeadEnd(bytes: Buffer, from: number): number | undefined {
  const at = bytes.indexOf(HEAD_END, Math.max(0, from - HEAD_END.length + 1))
  return at < 0 ? undefined : at + HEAD_END.length
}

/** Printable ASCII, space and tab; `allowed` adds bytes above 0x7f, which old servers send in headers. */
function isClean(line: string, highBytes: 'allowed' | 'refused'): boolean {
  for (let index = 0; index < line.length; index++) {
    const code = line.charCodeAt(index)
    const isHigh = code >= 0x80
    if (isHigh ? highBytes === 'refused' : (code < 0x20 && code !== 0x09) || code === 0x7f) return false
  }
  return true
}

function parseHeader(line: string): Header | undefined {
  const colon = line.indexOf(':')
  const name = colon < 0 ? '' : line.slice(0, colon)
  // Servers disagree about spaces before the colon and at the start of a line.
  return TOKEN.test(name) ? [name, line.slice(colon + 1).trim()] : undefined
}

/** Parses a complete head; undefined for a lone CR or LF, a NUL or a folded line. */
export function parseHead(bytes: Buffer, highBytes: 'allowed' | 'refused'): MessageHead | undefined {
  const text = bytes.subarray(0, bytes.length - HEAD_END.length).toString('latin1')
  const [firstLine = '', ...lines] = text.split(CRLF.toString('latin1'))
  if (lines.length > MAX_HEADERS || !isClean(firstLine, highBytes)) return undefined
  const headers: Header[] = []
  for (const line of lines) {
    const header = isClean(line, highBytes) ? parseHeader(line) : undefined
    if (header === undefined) return undefined
    headers.push(header)
  }
  return { firstLine, headers }
}

/** All values of a header. */
export function valuesOf(headers: readonly Header[], name: string): readonly string[] {
  return headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value)
}

/** Hop-by-hop headers, which are not forwarded; framing headers are. */
const HOP_HEADERS = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-authentication-info',
  'te',
  'upgrade',
])

/** Headers without hop-by-hop ones, including those that `Connection` lists. */
export function withoutHopHeaders(headers: readonly Header[]): readonly Header[] {
  const named = valuesOf(headers, 'connection')
    .flatMap((value) => value.split(','))
    .map((name) => name.trim().toLowerCase())
    // Framing headers are kept even if `Connection` lists them.
    .filter((name) => name !== 'content-length' && name !== 'transfer-encoding')
  return headers.filter(([name]) => {
    const lower = name.toLowerCase()
    return !HOP_HEADERS.has(lower) && !lower.startsWith('proxy-') && !named.includes(lower)
  })
}

export function formatHead({ firstLine, headers }: MessageHead): Buffer {
  const lines = [firstLine, ...headers.map(([name, value]) => `${name}: ${value}`), '', '']
  return Buffer.from(lines.join('\r\n'), 'latin1')
}
