import type { RemoteEntry } from '../copy/remote-workspace.ts'

const KINDS: Readonly<Record<RemoteEntry['kind'], string>> = {
  file: '-',
  folder: 'd',
  link: 'l',
  special: '?',
}
const HALF_A_YEAR_MS = 182 * 86_400_000

/** Escapes everything in a name that a terminal would interpret. */
export function escapeName(name: string): string {
  return name.replace(/[\p{C}\p{Zl}\p{Zp}\\]/gu, (character) => {
    if (character === '\\') return '\\\\'
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    const code = character.codePointAt(0) ?? 0
    // A lone surrogate is a byte that is not UTF-8.
    if (code >= 0xdc80 && code <= 0xdcff) return `\\x${(code & 0xff).toString(16)}`
    return code < 0x80 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
  })
}

function formatMode(mode: number): string {
  const letters = ['r', 'w', 'x', 'r', 'w', 'x', 'r', 'w', 'x']
  return letters.map((letter, at) => ((mode >> (8 - at)) & 1 ? letter : '-')).join('')
}

function formatTime(mtimeMs: number, nowMs: number): string {
  const time = new Date(mtimeMs)
  if (Number.isNaN(time.getTime())) return '?'
  const two = (number: number): string => String(number).padStart(2, '0')
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
  const isRecent = Math.abs(nowMs - mtimeMs) < HALF_A_YEAR_MS
  return isRecent ? `${day} ${two(time.getHours())}:${two(time.getMinutes())}` : `${day}      `
}

/** What a link points to, if known. */
function formatTarget({ kind, target }: RemoteEntry): string {
  if (kind !== 'link' || target === undefined) return ''
  return target === null ? ' -> (outside or missing)' : ` -> (a ${target})`
}

/** Lines with kind, mode, size, time, name and link target. */
export function formatLongListing(entries: readonly RemoteEntry[], nowMs: number): string {
  const width = Math.max(0, ...entries.map(({ size }) => String(size).length))
  return entries
    .map((entry) => {
      const { kind, mode, size, mtimeMs, name } = entry
      const facts = `${KINDS[kind]}${formatMode(mode)}  ${String(size).padStart(width)}  ${formatTime(mtimeMs, nowMs)}`
      return `${facts}  ${escapeName(name)}${formatTarget(entry)}\n`
    })
    .join('')
}
