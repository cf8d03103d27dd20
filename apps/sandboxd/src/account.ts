import { readFileSync } from 'node:fs'

/** What the system knows about a user. */
export interface Account {
  readonly name: string
  readonly home: string
  readonly shell: string
}

/** The account of a numeric user in the text of a passwd file. */
export function findAccount(passwd: string, uid: number): Account | undefined {
  for (const line of passwd.split('\n')) {
    const [name, , id, , , home, shell] = line.split(':')
    if (name === undefined || id !== String(uid)) continue
    return {
      name,
      home: home === undefined || home === '' ? '/' : home,
      shell: shell === undefined || shell === '' ? '/bin/sh' : shell,
    }
  }
  return undefined
}

/** The account of a user of this machine. Read here because Bun's `userInfo` takes names from the environment (1.4). */
export function readAccount(uid: number): Account {
  const fallback: Account = { name: 'user', home: '/', shell: '/bin/sh' }
  try {
    return findAccount(readFileSync('/etc/passwd', 'utf8'), uid) ?? fallback
  } catch {
    // A container without the file has no names to give.
    return fallback
  }
}
