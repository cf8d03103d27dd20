import { readdirSync, readFileSync } from 'node:fs'

/** Names of the running commands, as truncated by the kernel. */
export function commandsRunning(): readonly string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map(commandOf)
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    // Ended meanwhile.
    return ''
  }
}
