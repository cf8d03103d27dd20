import type { FileText } from '../editor/file-text.ts'
import { fileTexts } from '../texts/files.ts'
import type { Theirs } from './open-file.ts'

interface Conflict {
  readonly theirs: Theirs
  /** The text in the editor. */
  readonly mine: FileText
  readonly isDirty: boolean
  /** The user tried to save. */
  readonly triedToSave: boolean
}

const { conflict: texts } = fileTexts

/** Describes differences that a side-by-side view does not show; undefined when there are none. */
function invisibleDifferences(theirs: FileText, mine: FileText): string | undefined {
  const isOnly = mine.hasLinesOf(theirs)
  const [hasEnds, hasMark] = [
    theirs.ends !== undefined && mine.ends !== undefined && theirs.ends !== mine.ends,
    theirs.hasMark !== mine.hasMark,
  ]
  if (!hasEnds && !hasMark) return undefined
  const names = [...(hasEnds ? [texts.lineEndings] : []), ...(hasMark ? [texts.byteOrderMark] : [])].join(
    ' and ',
  )
  const details = [
    ...(hasEnds ? [texts.endings(theirs.ends ?? '', mine.ends ?? '')] : []),
    ...(hasMark ? [theirs.hasMark ? texts.markOnDisk : texts.markInMine] : []),
  ].join('; ')
  const verb = hasEnds ? 'differ' : 'differs'
  if (isOnly) return `Only ${names} ${verb}: ${details}.`
  return `${names.charAt(0).toUpperCase()}${names.slice(1)} ${verb} as well: ${details}.`
}

function describeConflict({ theirs, mine, isDirty }: Conflict): string {
  if (typeof theirs === 'string') {
    const during = theirs === 'gone' && isDirty ? texts.whileEditing : ''
    return `${texts[theirs]}${during}. ${isDirty ? texts.stillHere : texts.lastText}`
  }
  if (theirs.text === undefined) return texts.noLongerText
  const unseen = invisibleDifferences(theirs.text, mine)
  const isOnlyUnseen = unseen !== undefined && mine.hasLinesOf(theirs.text)
  const parts = [texts.changed, ...(isOnlyUnseen ? [] : [texts.sides]), unseen ?? []]
  return parts.flat().join(' ')
}

/** The message above a conflict. */
export function conflictMessage(conflict: Conflict): string {
  const happened = describeConflict(conflict)
  return conflict.triedToSave ? `${texts.notSaved} ${happened}` : happened
}
