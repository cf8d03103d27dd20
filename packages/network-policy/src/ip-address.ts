/** An IP address as its bytes, four or sixteen of them, and in its one spelling. */
export interface IpAddress {
  readonly bytes: Uint8Array
  /** Canonical: no leading zeros, lower case, the longest run of zeros as `::`. */
  readonly text: string
}

const MAX_IPV6_CHARS = 45

function parseOctet(text: string): number | undefined {
  if (!/^(0|[1-9][0-9]{0,2})$/.test(text)) return undefined
  const value = Number(text)
  return value <= 255 ? value : undefined
}

/** Four decimal numbers and nothing else: other spellings mean different addresses to different programs. */
function parseIpv4Bytes(text: string): Uint8Array | undefined {
  if (text.length > 15) return undefined
  const octets = text.split('.').map(parseOctet)
  if (octets.length !== 4) return undefined
  const known = octets.filter((octet) => octet !== undefined)
  return known.length === 4 ? Uint8Array.from(known) : undefined
}

/** The 16-bit groups of one side of a `::`, where the last may be a dotted IPv4. */
function parseGroups(text: string): readonly number[] | undefined {
  if (text === '') return []
  const groups: number[] = []
  const parts = text.split(':')
  for (const [index, part] of parts.entries()) {
    const isLast = index === parts.length - 1
    const ipv4 = isLast && part.includes('.') ? parseIpv4Bytes(part) : undefined
    if (ipv4 !== undefined) {
      const [a = 0, b = 0, c = 0, d = 0] = ipv4
      groups.push((a << 8) | b, (c << 8) | d)
    } else if (/^[0-9a-f]{1,4}$/i.test(part)) groups.push(Number.parseInt(part, 16))
    else return undefined
  }
  return groups
}

function parseIpv6Bytes(text: string): Uint8Array | undefined {
  if (text.length > MAX_IPV6_CHARS || !text.includes(':')) return undefined
  const [before = '', after, ...more] = text.split('::')
  if (more.length > 0) return undefined
  const head = parseGroups(before)
  const tail = after === undefined ? [] : parseGroups(after)
  if (head === undefined || tail === undefined) return undefined
  // A dotted IPv4 stands at the very end only.
  if (after !== undefined && before.includes('.')) return undefined
  const missing = 8 - head.length - tail.length
  if (after === undefined ? missing !== 0 : missing < 1) return undefined
  const groups = [...head, ...Array.from({ length: missing }, () => 0), ...tail]
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 255]))
}

function spellIpv6(bytes: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, index) =>
    (((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0)).toString(16),
  )
  let best = { from: 0, length: 0 }
  for (let from = 0; from < 8; from++) {
    let length = 0
    while (groups[from + length] === '0') length++
    if (length > best.length) best = { from, length }
  }
  if (best.length < 2) return groups.join(':')
  return `${groups.slice(0, best.from).join(':')}::${groups.slice(best.from + best.length).join(':')}`
}

/** Reads an IPv4 or IPv6 address in a spelling that every program understands alike; no zones, no brackets. */
export function parseIpAddress(text: string): IpAddress | undefined {
  const ipv4 = parseIpv4Bytes(text)
  if (ipv4 !== undefined) return { bytes: ipv4, text: ipv4.join('.') }
  const ipv6 = parseIpv6Bytes(text)
  return ipv6 === undefined ? undefined : { bytes: ipv6, text: spellIpv6(ipv6) }
}
