import { readdirSync, readFileSync } from 'node:fs'

/** Names of the commands that run on this machine, as the kernel keeps them. */
export function commandsRunning(): readonly string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map(commandOf)
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    // It has ended meanwhile.
    return ''
  }
}
