import type { Matches } from '@sandwire/react'
import { terminalTexts } from '../texts/terminals.ts'

/** What is said of a search. */
export function findWordsOf(text: string, { at, count, isCounted }: Matches): string {
  if (text === '') return ''
  if (count === 0) return terminalTexts.find.none
  if (!isCounted) return terminalTexts.find.atLeast(count)
  return at === undefined ? terminalTexts.find.count(count) : terminalTexts.find.position(at, count)
}
