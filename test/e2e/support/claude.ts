import { cpSync, existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { findProgram, installAgent } from '../../../apps/host/src/agents/install-agent.ts'
import { agentSources } from '../../../apps/host/src/commands/agents.ts'

const ROOT = resolve(import.meta.dir, '../../../.cache')
const CACHE = join(ROOT, 'agents')

/** Fetches the real claude into the cache, once. Returns why it cannot be had; undefined: it is there. */
export async function fetchClaude(): Promise<string | undefined> {
  try {
    mkdirSync(CACHE, { recursive: true })
    await installAgent({ ...agentSources(ROOT, process.env), name: 'claude', onProgress: () => undefined })
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Gives a data folder the cached claude, by hard links. */
export function provideClaude(dataFolder: string): void {
  const { version } = findProgram({ name: 'claude' })
  const to = join(dataFolder, 'agents')
  if (existsSync(join(to, 'claude', version))) return
  mkdirSync(to, { recursive: true, mode: 0o755 })
  const linked = Bun.spawnSync(['cp', '-al', join(CACHE, 'claude'), to])
  // Another file system.
  if (linked.exitCode !== 0)
    cpSync(join(CACHE, 'claude'), join(to, 'claude'), { recursive: true, verbatimSymlinks: true })
}
