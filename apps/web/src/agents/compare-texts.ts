import { diff } from '@codemirror/merge'
import type { PatchFile, PatchLine } from './patch-files.ts'

/** Unchanged lines that are shown around a change. */
const CONTEXT_LINES = 3
/** Bounds the diff; a larger difference shows more lines as changed. */
const EFFORT = { scanLimit: 1_000, timeout: 100 }
/** Each different line becomes one character, below those that come in pairs. */
const MAX_DIFFERENT_LINES = 0xd000

/** Lines with their line breaks. */
function linesOf(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? []
}

/** The changed lines of a file; undefined when it has too many to compare. */
export function compareTexts(path: string, before: string, after: string): PatchFile | undefined {
  const [oldLines, newLines] = [linesOf(before), linesOf(after)]
  const codes = new Map<string, string>()
  const encode = (lines: readonly string[]): string =>
    lines
      .map((line) => {
        const code = codes.get(line) ?? String.fromCharCode(codes.size + 1)
        codes.set(line, code)
        return code
      })
      .join('')
  const changes = diff(encode(oldLines), encode(newLines), EFFORT)
  if (codes.size > MAX_DIFFERENT_LINES) return undefined

  const lines: PatchLine[] = []
  const push = (kind: PatchLine['kind'], text: string, line: number): void => {
    lines.push({ kind, text: text.replace(/\n$/, ''), line })
    if (!text.endsWith('\n')) lines.push({ kind: 'note', text: 'No newline at end of file', line: undefined })
  }
  // Of the new file: up to where lines are shown.
  let shown = -1
  let [added, removed] = [0, 0]
  changes.forEach(({ fromA, toA, fromB, toB }, at) => {
    const start = Math.max(shown, fromB - CONTEXT_LINES, 0)
    if (start > shown)
      lines.push({ kind: 'hunk', text: `@@ -${start + fromA - fromB + 1} +${start + 1} @@`, line: undefined })
    newLines.slice(start, fromB).forEach((text, index) => push('same', text, start + index + 1))
    oldLines.slice(fromA, toA).forEach((text, index) => push('removed', text, fromA + index + 1))
    newLines.slice(fromB, toB).forEach((text, index) => push('added', text, fromB + index + 1))
    removed += toA - fromA
    added += toB - fromB
    shown = Math.min(toB + CONTEXT_LINES, changes[at + 1]?.fromB ?? newLines.length, newLines.length)
    newLines.slice(toB, shown).forEach((text, index) => push('same', text, toB + index + 1))
  })
  return { path, lines, added, removed }
}
