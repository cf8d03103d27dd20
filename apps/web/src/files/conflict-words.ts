import type { FileText } from '../editor/file-text.ts'
import type { NoFile, Theirs } from './file-state.ts'

interface Conflict {
  readonly theirs: Theirs
  /** The text in the editor. */
  readonly mine: FileText
  readonly isDirty: boolean
  /** The person wanted to save it. */
  readonly isAsked: boolean
}

const NO_FILE: Readonly<Record<NoFile, string>> = {
  gone: 'The file was removed or moved',
  folder: 'There is a folder in the place of this file now',
  special: 'What is in the place of this file is no longer a file',
}

/** What differs between two texts and is not seen beside each other; undefined when nothing does. */
function unseenWords(theirs: FileText, mine: FileText): string | undefined {
  const isOnly = mine.hasLinesOf(theirs)
  const [hasEnds, hasMark] = [
    theirs.ends !== undefined && mine.ends !== undefined && theirs.ends !== mine.ends,
    theirs.hasMark !== mine.hasMark,
  ]
  if (!hasEnds && !hasMark) return undefined
  const names = [...(hasEnds ? ['line ends'] : []), ...(hasMark ? ['the byte order mark'] : [])].join(' and ')
  const details = [
    ...(hasEnds ? [`${theirs.ends} on disk, ${mine.ends} in yours`] : []),
    ...(hasMark
      ? [theirs.hasMark ? 'it is on disk, and not in yours' : 'it is not on disk, but in yours']
      : []),
  ].join('; ')
  const verb = hasEnds ? 'differ' : 'differs'
  if (isOnly) return `Only ${names} ${verb}: ${details}.`
  return `${names.charAt(0).toUpperCase()}${names.slice(1)} ${verb} as well: ${details}.`
}

function whatHappened({ theirs, mine, isDirty }: Conflict): string {
  if (typeof theirs === 'string') {
    const during = theirs === 'gone' && isDirty ? ' while you changed it' : ''
    return `${NO_FILE[theirs]}${during}. ${isDirty ? 'Nothing of yours is lost.' : 'This is the text it had.'}`
  }
  if (theirs.text === undefined)
    return 'The file changed while you changed it too, and is no longer text. Right: yours, which you can still edit.'
  const unseen = unseenWords(theirs.text, mine)
  const sides = 'Left: on disk. Right: yours, which you can still edit.'
  const isOnlyUnseen = unseen !== undefined && mine.hasLinesOf(theirs.text)
  const parts = ['The file changed while you changed it too.', ...(isOnlyUnseen ? [] : [sides]), unseen ?? []]
  return parts.flat().join(' ')
}

/** What is said above a conflict. */
export function conflictWords(conflict: Conflict): string {
  const happened = whatHappened(conflict)
  return conflict.isAsked ? `Not saved: choose what to keep. ${happened}` : happened
}
