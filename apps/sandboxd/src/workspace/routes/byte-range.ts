import type { Span } from '../bytes/read-bytes.ts'

/**
 * What a `Range` header asks for of a file: one span, everything (no range, several, or one that means nothing, which HTTP
 * says to ignore), or nothing that the file holds.
 */
export function parseRange(header: string | null, sizeBytes: number): Span | 'all' | 'none' {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '')
  const [, first = '', last = ''] = match ?? []
  if (match === null || (first === '' && last === '')) return 'all'
  if (first === '') return suffix(Number(last), sizeBytes)
  const start = Number(first)
  const end = last === '' ? sizeBytes : Math.min(Number(last) + 1, sizeBytes)
  if (last !== '' && Number(last) < start) return 'all'
  return start >= sizeBytes ? 'none' : { start, end }
}

function suffix(count: number, sizeBytes: number): Span | 'none' {
  return count === 0 || sizeBytes === 0 ? 'none' : { start: Math.max(0, sizeBytes - count), end: sizeBytes }
}
