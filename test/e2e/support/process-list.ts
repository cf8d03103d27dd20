import { readdirSync, readFileSync } from 'node:fs'

/** Processes whose arguments contain a text; zombies have no arguments. */
export function findProcesses(text: string): { readonly pid: number; readonly argv: readonly string[] }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const argv = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').slice(0, -1)
        return argv.some((argument) => argument.includes(text)) ? [{ pid: Number(name), argv }] : []
      } catch {
        // Already ended.
        return []
      }
    })
}
