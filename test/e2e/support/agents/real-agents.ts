import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { AGENT_PROGRAMS } from '../../../../apps/host/src/agents/catalog.ts'
import { installAgent } from '../../../../apps/host/src/agents/install-agent.ts'

/** Not part of the project's own installation: fetched by the first test that needs it, and kept. */
const FOLDER = resolve(import.meta.dir, '../../../../.cache/agents')

/** The real program of an agent, in a folder of programs as hosts have it; or why it cannot be had. */
export type RealAgent =
  | { readonly folder: string; readonly program: string; readonly problem?: undefined }
  | { readonly problem: string }

export function findClaude(): Promise<RealAgent> {
  return findAgent('claude')
}

/** Installs the pinned version of an agent, unless it is there. */
export async function findAgent(name: string): Promise<RealAgent> {
  const npm = Bun.which('npm')
  const configured =
    npm === null
      ? ''
      : Bun.spawnSync([npm, 'config', 'get', 'registry'], { stderr: 'ignore' }).stdout.toString().trim()
  if (configured === '') return { problem: 'npm is not installed' }
  try {
    mkdirSync(FOLDER, { recursive: true })
    const installed = await installAgent({
      folder: FOLDER,
      name,
      registry: configured,
      onProgress: () => undefined,
    })
    const program = join(FOLDER, name, AGENT_PROGRAMS[name]?.version ?? installed.version, installed.file)
    return existsSync(program) ? { folder: FOLDER, program } : { problem: 'it was not installed' }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}
