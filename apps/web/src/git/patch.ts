/** A hunk of a unified diff. */
interface Hunk {
  /** Lines with their endings. */
  readonly before: readonly string[]
  readonly after: readonly string[]
  /** First line in the old and in the new text, from 0. */
  readonly beforeAt: number
  readonly afterAt: number
}

const HEADER = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/

/** Index of a hunk's first line; git numbers an empty range by the line before it. */
function startOf(line: string, count: string | undefined): number {
  return count === '0' ? Number(line) : Number(line) - 1
}

interface OpenHunk {
  readonly before: string[]
  readonly after: string[]
  readonly beforeAt: number
  readonly afterAt: number
}

/** The hunks of one file's diff. */
function parseHunks(diff: string): readonly Hunk[] {
  const hunks: OpenHunk[] = []
  let sign: string | undefined
  for (const line of diff.split('\n')) {
    const header = HEADER.exec(line)
    const hunk = hunks.at(-1)
    // Lines of a hunk start with a sign, so a line without one is a header or the end.
    if (header !== null) {
      const [, oldLine = '0', oldCount, newLine = '0', newCount] = header
      const beforeAt = startOf(oldLine, oldCount)
      hunks.push({ before: [], after: [], beforeAt, afterAt: startOf(newLine, newCount) })
      sign = ''
    } else if (hunk !== undefined && sign !== undefined) sign = takeLine(hunk, line, sign)
  }
  return hunks
}

/** Adds a line to its side and returns its sign; undefined when the line ends the hunk. */
function takeLine({ before, after }: OpenHunk, line: string, lastSign: string): string | undefined {
  const [sign = '', text] = [line[0], `${line.slice(1)}\n`]
  if (sign === '\\') {
    // "No newline at end of file" refers to the line before it.
    if (lastSign !== '+') trimLast(before)
    if (lastSign !== '-') trimLast(after)
    return lastSign
  }
  if (sign !== ' ' && sign !== '-' && sign !== '+') return undefined
  if (sign !== '+') before.push(text)
  if (sign !== '-') after.push(text)
  return sign
}

function trimLast(lines: string[]): void {
  const last = lines.pop()
  if (last !== undefined) lines.push(last.replace(/\n$/, ''))
}

function splitLines(text: string): readonly string[] {
  return text === '' ? [] : (text.match(/[^\n]*\n|[^\n]+$/g) ?? [])
}

/** A hunk seen from one side: where it starts, what is there, and its replacement. */
interface Swap {
  readonly at: number
  readonly found: readonly string[]
  readonly put: readonly string[]
}

/** Applies hunks line by line, since a large hunk would exceed the argument limit of `push`. */
function swapLines(text: string, swaps: readonly Swap[]): string | undefined {
  const lines = splitLines(text)
  const out: string[] = []
  let next = 0
  for (const { at, found, put } of swaps) {
    if (at < next) return undefined
    for (const line of lines.slice(next, at)) out.push(line)
    for (const line of put) out.push(line)
    next = at + found.length
    if (lines.slice(at, next).join('') !== found.join('')) return undefined
  }
  return out.join('') + lines.slice(next).join('')
}

/**
 * The old text, from the new one and the diff; undefined when they do not match, as when the file changed in between.
 */
export function undoDiff(after: string, diff: string): string | undefined {
  const hunks = parseHunks(diff)
  return swapLines(
    after,
    hunks.map((hunk) => ({ at: hunk.afterAt, found: hunk.after, put: hunk.before })),
  )
}

/** The new text, from the old one and the diff. */
export function applyDiff(before: string, diff: string): string | undefined {
  const hunks = parseHunks(diff)
  return swapLines(
    before,
    hunks.map((hunk) => ({ at: hunk.beforeAt, found: hunk.before, put: hunk.after })),
  )
}
