import type { FirstCommand } from '../../terminals/terminal-shelf.ts'

/** Addresses that git may be given: of the web, without a password, and nothing that is an option or a program. */
export function isRepositoryAddress(text: string): boolean {
  try {
    const { protocol, username, password } = new URL(text)
    return protocol === 'https:' && username === '' && password === '' && !/\s/.test(text)
  } catch {
    // No address at all.
    return false
  }
}

/** Says what it does, does it, and goes on as the shell of whoever looks at it. */
const CLONE_THEN_SHELL = `printf 'git clone %s\\n' "$1"; git clone -- "$1" .; exec "\${SHELL:-/bin/sh}" -l`

/** Fetches a repository into the folder that a terminal starts in. The address is an argument, never a part of the script. */
export function cloneCommand(address: string): FirstCommand {
  return { cmd: '/bin/sh', args: ['-c', CLONE_THEN_SHELL, 'clone', new URL(address).href] }
}
