const CRLF = '\r\n'
/** The end of the last line and the empty line after it. */
const HEAD_END = Buffer.from('\r\n\r\n')
const MAX_HEADERS = 100
/** Characters of a header name. */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/

export type Header = readonly [name: string, value: string]

/** The start line of a message and its headers, each free of control characters. */
export interface MessageHead {
  readonly startLine: string
  readonly headers: readonly Header[]
}

/** Length of the head, including its empty line; undefined while incomplete. */
export function findHeadEnd(bytes: Buffer, from: number): number | undefined {
  const at = bytes.indexOf(HEAD_END, Math.max(0, from - HEAD_END.length + 1))
  return at < 0 ? undefined : at + HEAD_END.length
}

/** Printable ASCII, space and tab; obs-text (RFC 9110) is bytes above 0x7f, which old servers send in headers. */
function hasOnlyFieldCharacters(line: string, obsText: 'allowed' | 'refused'): boolean {
  for (let index = 0; index < line.length; index++) {
    const code = line.charCodeAt(index)
    const isObsText = code >= 0x80
    if (isObsText ? obsText === 'refused' : (code < 0x20 && code !== 0x09) || code === 0x7f) return false
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
export function parseHead(bytes: Buffer, obsText: 'allowed' | 'refused'): MessageHead | undefined {
  const text = bytes.subarray(0, bytes.length - HEAD_END.length).toString('latin1')
  const [startLine = '', ...lines] = text.split(CRLF)
  if (lines.length > MAX_HEADERS || !hasOnlyFieldCharacters(startLine, obsText)) return undefined
  const headers: Header[] = []
  for (const line of lines) {
    const header = hasOnlyFieldCharacters(line, obsText) ? parseHeader(line) : undefined
    if (header === undefined) return undefined
    headers.push(header)
  }
  return { startLine, headers }
}

/** All values of a field. */
export function fieldValues(headers: readonly Header[], name: string): readonly string[] {
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
  const named = fieldValues(headers, 'connection')
    .flatMap((value) => value.split(','))
    .map((name) => name.trim().toLowerCase())
    // Framing headers are kept even if `Connection` lists them.
    .filter((name) => name !== 'content-length' && name !== 'transfer-encoding')
  return headers.filter(([name]) => {
    const lower = name.toLowerCase()
    return !HOP_HEADERS.has(lower) && !lower.startsWith('proxy-') && !named.includes(lower)
  })
}

export function formatHead({ startLine, headers }: MessageHead): Buffer {
  const lines = [startLine, ...headers.map(([name, value]) => `${name}: ${value}`), '', '']
  return Buffer.from(lines.join(CRLF), 'latin1')
}
