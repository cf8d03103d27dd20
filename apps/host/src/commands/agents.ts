import { readdirSync } from 'node:fs'
import { agentsFolder, openAgentsFolder } from '../agents/agents-folder.ts'
import { installAgent, type InstallOptions } from '../agents/install-agent.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The registry that npm is configured with; empty without npm. */
function registryOfNpm(env: Environment): string {
  const npm = Bun.which('npm')
  if (npm === null) return ''
  const { stdout } = Bun.spawnSync([npm, 'config', 'get', 'registry'], { env: { ...env }, stderr: 'ignore' })
  return stdout.toString().trim()
}

function hasMusl(): boolean {
  try {
    return readdirSync('/lib').some((name) => name.startsWith('ld-musl-'))
  } catch {
    // No such folder.
    return false
  }
}

/** Where programs of agents are installed, and where they come from. */
export function agentSources(
  dataFolder: string,
  env: Environment,
): Pick<InstallOptions, 'folder' | 'registry' | 'hasMusl'> {
  openAgentsFolder(dataFolder)
  const registry = env['SANDWIRE_NPM_REGISTRY'] ?? env['npm_config_registry'] ?? registryOfNpm(env)
  return { folder: agentsFolder(dataFolder), registry, hasMusl: hasMusl() }
}

/** A line that replaces itself in a terminal. */
function formatProgress(receivedBytes: number, totalBytes: number): string {
  const mebibytes = (bytes: number): string => (bytes / 1024 ** 2).toFixed(0)
  if (totalBytes === 0) return `${mebibytes(receivedBytes)} MiB`
  const done = Math.floor((receivedBytes * 24) / totalBytes)
  const bar = `${'#'.repeat(done)}${'.'.repeat(24 - done)}`
  return `[${bar}] ${mebibytes(receivedBytes)} of ${mebibytes(totalBytes)} MiB`
}

/** Installs the program of an agent, with a progress bar on a terminal. Returns the line to print. */
export async function installAgentCommand(
  { name, version }: { readonly name: string; readonly version?: string },
  dataFolder: string,
  { env, progress }: { readonly env: Environment; readonly progress: ((text: string) => void) | undefined },
): Promise<string> {
  let shownAtMs = 0
  const installed = await installAgent({
    ...agentSources(dataFolder, env),
    name,
    ...(version !== undefined && { version }),
    onProgress: (received, total) => {
      const nowMs = performance.now()
      if (progress === undefined || (nowMs - shownAtMs < 100 && received < total)) return
      shownAtMs = nowMs
      progress(`\r${formatProgress(received, total)}`)
    },
  })
  progress?.('\r\u001b[K')
  return `Installed agent ${installed.name} ${installed.version}; runs use it from now on`
}
