/** A run of lines that a unified diff changes. */
interface Hunk {
  /** Lines before and after, with their ends. */
  readonly before: readonly string[]
  readonly after: readonly string[]
  /** First line in the old and in the new text, from 0. */
  readonly beforeAt: number
  readonly afterAt: number
}

const HEADER = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/

/** A line's place in a text; an empty run is told by the line before it. */
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
    // A line of the text begins with its sign, so only a header has none; it ends what came before.
    if (header !== null) {
      const [, oldLine = '0', oldCount, newLine = '0', newCount] = header
      const beforeAt = startOf(oldLine, oldCount)
      hunks.push({ before: [], after: [], beforeAt, afterAt: startOf(newLine, newCount) })
      sign = ''
    } else if (hunk !== undefined && sign !== undefined) sign = takeLine(hunk, line, sign)
  }
  return hunks
}

/** Puts a line on its side and gives its sign; undefined when it is none of a hunk. */
function takeLine({ before, after }: OpenHunk, line: string, lastSign: string): string | undefined {
  const [sign = '', text] = [line[0], `${line.slice(1)}\n`]
  if (sign === '\\') {
    // "No newline at end of file" is about the line before it.
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

/** A hunk as one side sees it: where it begins there, what is there, and what takes its place. */
interface Swap {
  readonly at: number
  readonly found: readonly string[]
  readonly put: readonly string[]
}

/** Puts hunks into a text. Line by line, as a hunk may hold more lines than a call takes arguments. */
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
 * The old text of a file, made of its new one and the difference between them; undefined when the two do not belong together, as
 * when the file changed in between.
 */
export function undoDiff(after: string, diff: string): string | undefined {
  const hunks = parseHunks(diff)
  return swapLines(
    after,
    hunks.map((hunk) => ({ at: hunk.afterAt, found: hunk.after, put: hunk.before })),
  )
}

/** The new text of a file, made of its old one and the difference. */
export function applyDiff(before: string, diff: string): string | undefined {
  const hunks = parseHunks(diff)
  return swapLines(
    before,
    hunks.map((hunk) => ({ at: hunk.beforeAt, found: hunk.before, put: hunk.after })),
  )
}
