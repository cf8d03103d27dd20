/** A line of a patch, with its number in the new file, or in the old one if it was removed. */
export interface PatchLine {
  readonly kind: 'added' | 'removed' | 'same' | 'hunk' | 'note'
  readonly text: string
  readonly line: number | undefined
}

/** The part of a patch about one file. */
export interface PatchFile {
  readonly path: string
  readonly lines: readonly PatchLine[]
  readonly added: number
  readonly removed: number
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/
const UNSHOWN = /^(?:index |--- |\+\+\+ |GIT binary patch)/

/** The path in `diff --git a/OLD b/NEW`. Git quotes unusual names; those are shown as git does. */
function pathOf(header: string): string {
  const quoted = /"b\/((?:[^"\\]|\\.)*)"$/.exec(header)?.[1]
  if (quoted !== undefined) return quoted
  const names = header.slice('diff --git '.length)
  // Both names are equal unless the file was renamed.
  const half = (names.length - 1) / 2
  const second = names.slice(half + 1)
  if (Number.isInteger(half) && names.slice(0, half).slice(2) === second.slice(2)) return second.slice(2)
  return names.slice(names.lastIndexOf(' b/') + 3)
}

function readFile(text: string): PatchFile {
  const [header = '', ...rest] = text.split('\n')
  const lines: PatchLine[] = []
  let [oldLine, newLine, added, removed] = [0, 0, 0, 0]
  let isInHunk = false
  for (const line of rest) {
    const hunk = HUNK.exec(line)
    if (hunk !== null) {
      ;[oldLine, newLine, isInHunk] = [Number(hunk[1]), Number(hunk[2]), true]
      lines.push({ kind: 'hunk', text: line, line: undefined })
    } else if (!isInHunk) {
      if (line !== '' && !UNSHOWN.test(line)) lines.push({ kind: 'note', text: line, line: undefined })
    } else if (line.startsWith('+')) {
      lines.push({ kind: 'added', text: line.slice(1), line: newLine })
      newLine += 1
      added += 1
    } else if (line.startsWith('-')) {
      lines.push({ kind: 'removed', text: line.slice(1), line: oldLine })
      oldLine += 1
      removed += 1
    } else if (line.startsWith(' ')) {
      lines.push({ kind: 'same', text: line.slice(1), line: newLine })
      oldLine += 1
      newLine += 1
    } else if (line.startsWith('\\')) lines.push({ kind: 'note', text: line.slice(2), line: undefined })
  }
  return { path: pathOf(header), lines, added, removed }
}

/** Splits a patch of git by file. */
export function splitPatch(patch: string): readonly PatchFile[] {
  // Lines of a file's content start with a sign, so that this is never content.
  return patch
    .split(/^(?=diff --git )/m)
    .filter((part) => part.startsWith('diff --git '))
    .map(readFile)
}

/** A remark about a line. */
export interface LineComment {
  readonly path: string
  readonly line: number
  readonly isOld: boolean
  readonly text: string
}

/** Comments as one message to the agent. */
export function formatComments(comments: readonly LineComment[]): string {
  return comments
    .map(({ path, line, isOld, text }) => `${path}:${line}${isOld ? ' (removed line)' : ''}: ${text}`)
    .join('\n\n')
}
