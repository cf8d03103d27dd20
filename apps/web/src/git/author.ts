import type { Author } from '../api/git.ts'
import type { Shelf } from '../state/workbench.ts'

const AUTHOR_KEY = 'sandwire.author'

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Whether git can write a commit under this name: it has no place for angle brackets and line ends. */
export function isAuthor({ name, email }: Author): boolean {
  return [name, email].every((text) => text.trim() !== '' && !/[<>\p{Cc}]/u.test(text))
}

/** Who this account last committed as in this browser. What another account wrote there is not its business. */
export function readAuthor(shelf: Shelf, account: string): Author | undefined {
  try {
    const kept: unknown = JSON.parse(shelf.getItem(AUTHOR_KEY) ?? 'null')
    if (!isRecord(kept) || kept['account'] !== account) return undefined
    const { name, email } = kept
    if (typeof name !== 'string' || typeof email !== 'string') return undefined
    return isAuthor({ name, email }) ? { name, email } : undefined
  } catch {
    // What cannot be read is asked for again.
    return undefined
  }
}

export function keepAuthor(shelf: Shelf, account: string, { name, email }: Author): void {
  try {
    shelf.setItem(AUTHOR_KEY, JSON.stringify({ account, name, email }))
  } catch {
    // A full or forbidden storage costs typing it again, nothing else.
  }
}
