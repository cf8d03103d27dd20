import { chmodSync, copyFileSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { run } from './engine.ts'

const scripts = path.dirname(import.meta.dir)
const source = path.resolve(scripts, '../deploy/sandbox')

const host = path.resolve(scripts, '../apps/host/src/main.ts')

/** Puts programs of agents, each `NAME` or `NAME@VERSION`, into the build context. */
function addAgents(folder: string, agents: readonly string[]): void {
  const data = path.join(folder, 'data')
  for (const agent of agents)
    run(`Install ${agent}`, [process.execPath, host, 'agents', 'install', agent, '--data', data])
  rmSync(path.join(folder, 'agents'), { recursive: true, force: true })
  if (agents.length > 0) renameSync(path.join(data, 'agents'), path.join(folder, 'agents'))
  else mkdirSync(path.join(folder, 'agents'), { mode: 0o755 })
  rmSync(data, { recursive: true, force: true })
}

/** Fills the build context of the image: the compiled sandboxd, the files of `deploy/sandbox`, and programs of agents. */
export function fillContext(folder: string, agents: readonly string[] = []): void {
  mkdirSync(folder, { recursive: true })
  addAgents(folder, agents)
  run('Compile sandboxd', [process.execPath, path.join(scripts, 'build.ts'), folder])
  rmSync(path.join(folder, 'sbx-stdio'))
  for (const name of ['Dockerfile', 'startup.sh'])
    copyFileSync(path.join(source, name), path.join(folder, name))
  for (const name of ['sandboxd', 'startup.sh']) chmodSync(path.join(folder, name), 0o755)
}
