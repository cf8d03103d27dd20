import type { RunningHost } from '../../test/e2e/support/control.ts'
import { openControl } from '../competitors.ts'
import { createSandbox, destroySandbox, findIsolationProblem, openHost } from '../peers/control-plane.ts'
import { readRaw } from '../peers/raw-read.ts'
import { attachStream } from '../peers/sandwire.ts'
import { awaitText } from '../peers/stream.ts'
import { throughControl } from '../peers/through-control.ts'
import { below, type Competitor, type Row } from '../row.ts'
import { median } from '../statistics.ts'

/** Sandboxes per measurement. */
const TIMES = 10

/** How the prompt of a login shell ends. */
const PROMPT = '$ '

/** A shell in bare bubblewrap: the cost of isolation without our code. */
const BARE = ['bwrap', '--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev']

async function repeat(once: () => Promise<number>): Promise<number> {
  const times: number[] = []
  for (let left = TIMES; left > 0; left -= 1) times.push(await once())
  return median(times)
}

async function openPrompts(host: RunningHost): Promise<Competitor> {
  // The first sandbox creates what the others share.
  await createSandbox(host, 'first')
  let count = 0
  const once = async (): Promise<number> => {
    count += 1
    const sandbox = `prompt-${count}`
    const startMs = performance.now()
    const stream = await attachStream({ ...host, sandbox }, { argv: [], mode: 'pty' })
    await awaitText(stream, PROMPT)
    const ms = performance.now() - startMs
    stream.close()
    await destroySandbox(host, sandbox)
    return ms
  }
  return {
    name: throughControl.name,
    side: 'ours',
    measure: () => repeat(once),
    [Symbol.asyncDispose]: host.stop,
  }
}

async function timeBare(): Promise<number> {
  const startMs = performance.now()
  await readRaw([...BARE, 'bash', '-c', `printf '${PROMPT}'`], 'pty')
  return performance.now() - startMs
}

export const prompt: Row = {
  id: 'prompt',
  title: 'create a sandbox, see a prompt',
  unit: 'ms',
  about: 'From an attach with the name of a sandbox that does not exist to the prompt of its shell.',
  targets: [below(throughControl.name, 300, 'ms')],
  open: async () => {
    const problem = findIsolationProblem()
    if (problem !== undefined) return [{ name: throughControl.name, absent: problem }]
    return [openControl('bare bubblewrap', () => repeat(timeBare)), await openHost(openPrompts)]
  },
}
