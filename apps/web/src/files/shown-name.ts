import { printable } from '@sandwire/react'

/** A name as it may be shown: what cannot be printed is left out, and what is nothing then still has a place. */
export function shownName(name: string): string {
  const text = printable(name)
  return text === '' ? '(no printable name)' : text
}
