import { chmodSync, copyFileSync, mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { installAgentCommand } from '../../apps/host/src/commands/agents.ts'
import { run } from './engine.ts'

const scripts = path.dirname(import.meta.dir)
const source = path.resolve(scripts, '../deploy/sandbox')

/** Puts the program of an agent, `NAME` or `NAME@VERSION`, into the build context. */
async function addAgent(folder: string, agent: string): Promise<void> {
  const [name = '', version] = agent.split('@')
  console.error(
    await installAgentCommand({ name, ...(version !== undefined && { version }) }, folder, {
      env: process.env,
      progress: undefined,
    }),
  )
}

/** Fills the build context of the image: the compiled sandboxd, the files of `deploy/sandbox`, and programs of agents. */
export async function fillContext(folder: string, agents: readonly string[] = []): Promise<void> {
  mkdirSync(folder, { recursive: true })
  rmSync(path.join(folder, 'agents'), { recursive: true, force: true })
  mkdirSync(path.join(folder, 'agents'), { mode: 0o755 })
  for (const agent of agents) await addAgent(folder, agent)
  run('Compile sandboxd', [process.execPath, path.join(scripts, 'build.ts'), folder])
  rmSync(path.join(folder, 'sbx-stdio'))
  for (const name of ['Dockerfile', 'startup.sh'])
    copyFileSync(path.join(source, name), path.join(folder, name))
  for (const name of ['sandboxd', 'startup.sh']) chmodSync(path.join(folder, name), 0o755)
}
