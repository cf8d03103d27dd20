/** Counts of one or more `bun test` runs. */
export type TestCounts = { readonly passed: number; readonly failed: number; readonly skipped: number }

export const noTests: TestCounts = { passed: 0, failed: 0, skipped: 0 }

const countLine = /^ *(\d+) (pass|fail|skip|todo|errors?)$/gm

/**
 * Reads the counts from the summary that ends the output of `bun test`. Errors outside a test count as
 * failed, todos as skipped. Undefined when the run ended without a summary.
 */
export function parseTestSummary(output: string): TestCounts | undefined {
  const plain = Bun.stripANSI(output)
  const end = plain.lastIndexOf('\nRan ')
  if (end === -1) return undefined
  // Tests may print summaries too; only the last block of lines is this run's.
  const block = plain.slice(plain.lastIndexOf('\n\n', end) + 1, end)
  let counts = noTests
  for (const [, digits, kind] of block.matchAll(countLine)) {
    counts = addCounts(counts, toCounts(Number(digits), kind))
  }
  return counts
}

function toCounts(count: number, kind: string | undefined): TestCounts {
  if (kind === 'pass') return { ...noTests, passed: count }
  if (kind === 'skip' || kind === 'todo') return { ...noTests, skipped: count }
  return { ...noTests, failed: count }
}

export function addCounts(a: TestCounts, b: TestCounts): TestCounts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped }
}

/** True when nothing failed and at least one test passed. */
export function isGreen(counts: TestCounts): boolean {
  return counts.failed === 0 && counts.passed > 0
}

export function formatCounts(counts: TestCounts): string {
  return `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`
}

/** A failed test and its first error. */
export interface Failure {
  /** Relative to the project. */
  readonly file: string
  readonly title: string
  /** In one line; empty when there was no message. */
  readonly reason: string
}

const reasonChars = 200

/** Collects failed tests from the streamed output of `bun test`. */
export class FailureList {
  readonly failures: Failure[] = []
  #file = ''
  #partial = ''
  /** Lines of the first error since the last test ended; undefined before one. */
  #reason: string[] | undefined
  #isComplete = false
  readonly #titles = new Set<string>()

  push(text: string): void {
    const lines = (this.#partial + text).split('\n')
    this.#partial = lines.pop() ?? ''
    for (const line of lines) this.#take(Bun.stripANSI(line))
  }

  #take(line: string): void {
    const file = /^(\S+\.test\.tsx?):$/.exec(line)?.[1]
    if (file !== undefined) this.#file = file
    const [, verdict, title] = /^\((pass|fail|skip|todo)\) (.+)$/.exec(line) ?? []
    if (verdict === undefined || title === undefined) this.#takeReason(line)
    else this.#end(verdict, title)
  }

  #takeReason(line: string): void {
    if (/^\s+at /.test(line)) this.#isComplete = this.#reason !== undefined
    else if (this.#reason === undefined && /^(error|[A-Z]\w*): /.test(line)) this.#reason = [line]
    else if (this.#reason !== undefined && !this.#isComplete) this.#reason.push(line)
  }

  #end(verdict: string, title: string): void {
    const reason = (this.#reason ?? []).join(' ').replaceAll(/\s+/g, ' ').trim().slice(0, reasonChars)
    this.#reason = undefined
    this.#isComplete = false
    // At the end of a run bun prints every failure again, after the last file.
    if (verdict !== 'fail' || this.#titles.has(title)) return
    this.#titles.add(title)
    this.failures.push({ file: this.#file, title, reason })
  }
}

export function formatFailure({ file, title, reason }: Failure): string {
  return `${file}: ${title}${reason === '' ? '' : `\n  ${reason}`}`
}

/** Formats the first failures with their errors; later ones are often consequences. */
export function formatFailures(failures: readonly Failure[], limit: number): string[] {
  const lines = failures.slice(0, limit).map((failure) => `failed: ${formatFailure(failure)}`)
  return failures.length > limit ? [...lines, `and ${failures.length - limit} more`] : lines
}
