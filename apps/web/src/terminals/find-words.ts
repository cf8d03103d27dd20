import type { Matches } from '@sandwire/react'

/** What is said of a search. */
export function findWordsOf(text: string, { at, count, isCounted }: Matches): string {
  if (text === '') return ''
  if (count === 0) return 'Not found'
  if (!isCounted) return `${count}+ found`
  return at === undefined ? `${count} found` : `${at} of ${count}`
}
