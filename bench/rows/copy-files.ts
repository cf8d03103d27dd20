import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buildSbxStdio } from '../peers/sbx-stdio.ts'
import { openSshServer, ssh } from '../peers/ssh.ts'
import { findIsolationProblem, openControlledFiles } from '../peers/workspace.ts'
import { type Absent, atMost, type Competitor, type Row } from '../row.ts'
import type { Scratch } from '../scratch.ts'

const FILES = 10_000
const PER_FOLDER = 100
const OURS = 'sandwire sbx-stdio cp'
const THEIRS = 'tar | ssh'

/** Copies everything into an empty folder. */
type Copy = (from: string, to: string) => Promise<void>

/** Small files like source code, some hundred bytes each. */
async function makeTree(scratch: Scratch): Promise<string> {
  const root = join(scratch.directory, 'small-files')
  const text = 'export const value = 0 // some more of what sources hold\n'.repeat(8)
  for (let at = 0; at < FILES; at += 1) {
    const folder = join(root, `folder-${Math.floor(at / PER_FOLDER)}`)
    if (at % PER_FOLDER === 0) await mkdir(folder, { recursive: true })
    await writeFile(join(folder, `file-${at}.ts`), text)
  }
  return root
}

async function run(argv: readonly string[], env: Record<string, string> = {}): Promise<void> {
  const child = Bun.spawn([...argv], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...env },
  })
  const said = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`Cannot copy: ${said.slice(0, 300)}`)
}

async function seconds(action: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  await action()
  return (performance.now() - startMs) / 1000
}

function countFiles(folder: string): number {
  return Number(Bun.spawnSync(['sh', '-c', 'find "$0" -type f | wc -l', folder]).stdout.toString())
}

async function openOurs(scratch: Scratch, tree: string, way: 'in' | 'out'): Promise<Competitor | Absent> {
  const problem = findIsolationProblem()
  if (problem !== undefined) return { name: OURS, absent: problem }
  const program = buildSbxStdio(scratch)
  const place = await openControlledFiles()
  const env = { SBX_TOKEN: place.host.token }
  const copy: Copy = (from, to) => run([program, 'cp', from, to, '--url', place.host.url], env)
  const inside = `${place.sandbox}:copied`
  const back = join(scratch.directory, 'back')
  if (way === 'out') await copy(tree, inside)
  const measure = async (): Promise<number> => {
    const took = await seconds(() => (way === 'in' ? copy(tree, inside) : copy(inside, back)))
    if (way === 'in') await place.fetch('file?path=copied&recursive=1', { method: 'DELETE' })
    else await checkAndRemove(back)
    return took
  }
  return { name: OURS, side: 'ours', measure, [Symbol.asyncDispose]: () => place[Symbol.asyncDispose]() }
}

async function checkAndRemove(folder: string): Promise<void> {
  const found = countFiles(folder)
  if (found !== FILES) throw new Error(`Got ${found} files, expected ${FILES}`)
  await rm(folder, { recursive: true })
}

async function openTarOverSsh(
  scratch: Scratch,
  tree: string,
  way: 'in' | 'out',
): Promise<Competitor | Absent> {
  if (ssh.problem !== undefined) return { name: THEIRS, absent: ssh.problem }
  const server = await openSshServer()
  const target = join(scratch.directory, `by-ssh-${way}`)
  const login = server.argv().join(' ')
  const script =
    way === 'in'
      ? `tar -C '${tree}' -cf - . | ${login} "tar -C '${target}' -xf -"`
      : `${login} "tar -C '${tree}' -cf - ." | tar -C '${target}' -xf -`
  const measure = async (): Promise<number> => {
    await mkdir(target)
    const took = await seconds(() => run(['bash', '-c', `set -o pipefail; ${script}`]))
    await checkAndRemove(target)
    return took
  }
  return { name: THEIRS, side: 'peer', measure, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

function createRow(way: 'in' | 'out'): Row {
  const where = way === 'in' ? 'into a sandbox' : 'out of a sandbox'
  return {
    id: `copy-${way}`,
    title: `10,000 small files ${where}`,
    unit: 's',
    digits: 2,
    about: `From starting the program to its exit; 4.6 MB in 100 folders ${where}.`,
    targets: [atMost(OURS, THEIRS)],
    open: async ({ scratch }) => {
      const tree = await makeTree(scratch)
      return [await openOurs(scratch, tree, way), await openTarOverSsh(scratch, tree, way)]
    },
  }
}

export const copyIn = createRow('in')
export const copyOut = createRow('out')
